"""The report: one HTML page, and a few lines for a terminal, made from rows of the lake.

chapters/<chapter>   the questions of the report, each with its table, queries, chart and key figures
section, content     the types: chapters and sections, and the content of a report
queries, figures, charts, plots, text   shared by chapters: SQL, verdicts, kinds of charts, SVG, and values as text
page, summary        the HTML, and the lines for a terminal
asking               runs the queries with Spark, and writes the files beside the page

Everything is pure except for `asking`, the only module here that uses Spark.
"""
