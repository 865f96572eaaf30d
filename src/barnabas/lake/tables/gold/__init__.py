"""Gold: each table is computed from bronze and silver tables, and answers its `question`. One file per subject."""
