"""What the commands of `barnabas lake` do: session (what they share), answers (changes, drift, audits, plans, the report)."""
