"""`barnabas lake register`: the tables of a lake in a catalog of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from barnabas.cli.lake.session import CONF, LAKE, lake_failures, lake_session, pairs
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import note

if TYPE_CHECKING:
    from barnabas.lake.keeping.folders import Folder

_CATALOG = "spark.sql.catalogImplementation"
_OTHER_CATALOG = "spark.sql.catalog.spark_catalog"


@click.command("register", short_help="Put the tables into a catalog of Spark.")
@LAKE
@click.option("--database", default="barnabas", show_default=True, help="Database of the catalog; it is created.")
@CONF
def register(directory: Folder, database: str, conf: tuple[str, ...]) -> None:
    """Put the tables into a catalog of Spark, so that other sessions find them by name: spark.table("barnabas.topics").

    The catalog is the one that --conf or spark-defaults.conf set; without any, it is Hive's, in the directory where the
    command runs. A registered table always has the rows of the lake's last commit. Register again only if the lake has new
    tables or was moved. The other sessions need barnabas[lake], but no jar.

    \b
    Examples:
      barnabas lake register
      barnabas lake register --conf spark.hadoop.hive.metastore.uris=thrift://metastore:9083
    """
    with lake_failures(directory):
        from pyspark.errors import PySparkException

        from barnabas import __version__
        from barnabas.lake.asking.table_source import register_tables
        from barnabas.lake.keeping.manifest import stored_names
        from barnabas.lake.keeping.store import Lake

        names = stored_names(Lake(directory).manifest(), __version__)
        settings = pairs(conf, "--conf")
        if _CATALOG not in settings and _OTHER_CATALOG not in settings:
            conf = (*conf, f"{_CATALOG}=hive")
        with lake_session(directory, conf) as spark:
            if spark.conf.get(_CATALOG, "") == "in-memory" and spark.conf.get(_OTHER_CATALOG, None) is None:
                raise Failure(
                    "the catalog of this session ends with it", advice=f"set {_CATALOG}=hive, or another catalog"
                )
            try:
                register_tables(spark, directory, database, names)
            except PySparkException as error:
                raise Failure(str(error).partition("\n")[0], resource=f"database {database}") from error
        note(
            f"{len(names)} tables are in the database {database}: spark.table('{database}.{names[0]}')"
            if names
            else "the lake has no tables yet"
        )
