"""The answers: each table takes those of bronze and silver, and says in `question` what it answers. One file per subject."""
