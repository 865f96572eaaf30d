"""Who may use a console: hosts and origins, headers, sessions, start token and logins."""
