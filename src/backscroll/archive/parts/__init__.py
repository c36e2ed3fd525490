"""What an archive can be asked for, by occasion."""
