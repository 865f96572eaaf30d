"""A server of S3 in this process, from moto, with one bucket; and the variables by which its clients find it.

Requests are served one after the other: moto looks whether an object is there, and then creates it; S3 does both in one step.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET = "bucket"


def _one_by_one(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start_response))

    return serve


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield the address of an empty bucket. Processes that are started meanwhile find the server as well."""
    import boto3

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = _one_by_one(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="S3")
    thread.start()
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        with patch.dict(os.environ, variables):
            client = boto3.client("s3")
            client.create_bucket(Bucket=BUCKET)
            client.close()
            yield f"s3a://{BUCKET}"
    finally:
        _empty()
        server.shutdown()
        thread.join()
        server.server_close()


def _empty() -> None:
    """Forget the bucket: moto keeps all of them in this process."""
    from moto.core.model_instances import reset_model_data

    reset_model_data()
