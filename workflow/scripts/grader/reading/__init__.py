"""What people bring, a table in a file of any kind, as rows of `grader.rows.Timing`."""
