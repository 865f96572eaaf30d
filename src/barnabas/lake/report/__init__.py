"""The report: one page for people, and a few lines for a terminal, made from rows of the lake.

content (what a report is made of, and which rows it wants), queries (small answers for the plots, as SQL), text (values as
text, everything escaped), figures (what is good and what is not), plots (SVG), views (which plot answers which question),
page (the HTML), summary (the terminal). All of it pure: the caller asks Spark, and writes the file. Nothing imports Spark.
"""
