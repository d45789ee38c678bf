"""The lab's questions answered by claims: sentences that the tables of a study prove, or do not."""
