"""What goes beyond the lab: each folder can be deleted, and all else works on."""
