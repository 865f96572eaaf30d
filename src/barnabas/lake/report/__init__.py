"""The report: one page for people, and a few lines for a terminal, made from rows of the lake.

chapters/<chapter>   each question of the report: its table, queries, chart and key figures
section, content     types: chapters and sections; what is known of each cluster
queries, figures, charts, plots, text   shared by chapters: SQL, verdicts, kinds of charts, SVG, values as escaped text
page, summary        the HTML, and the lines for a terminal
asking               runs the queries with Spark, and writes the files beside the page

All of it is pure but for `asking`, the only module here that uses Spark.
"""
