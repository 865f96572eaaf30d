"""Reading the files of logs, for `dump` and kafka-dump-log."""
