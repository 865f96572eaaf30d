"""The report: one page for people, and a few lines for a terminal, made from rows of the lake.

content (what a report is made of, and which rows it wants), queries (small answers for the plots, as SQL), text (values as
text, everything escaped), figures (what is good and what is not), plots (SVG), views and use_views (which plot answers which
question), page (the HTML), summary (the terminal). All of it pure, but for asking, which asks Spark and writes the files
beside the page. Nothing imports Spark.
"""
