"""Reads and writes small files in any file system that Hadoop knows, through Spark's JVM."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from wallaroo_runtime.durable.directory import Directory, LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import AGAIN, OTHER_FIX, described

MAX_FILE_BYTES = 64 * 1024 * 1024


def spark_path(path: object) -> str:
    """Return a path or URL as a URL for Spark.

    Spark itself would look for a path without a scheme in its default file system, which may be HDFS.

    Example:
        >>> spark_path("/var/checkpoint"), spark_path("hdfs://name/checkpoint")
        ('file:///var/checkpoint', 'hdfs://name/checkpoint')
    """
    text = str(path)
    return text if "://" in text else f"file://{os.path.abspath(text)}"


class HadoopDirectory:
    """A directory in a file system of Hadoop, e.g. a checkpoint in HDFS or S3.

    Args:
        session: Its JVM and its configuration of Hadoop are used.
        url: URL with a scheme: `file:///var/checkpoint`, `hdfs://name/checkpoint`, `s3a://bucket/checkpoint`.

    Every method raises `RunError` R684 if the file system refuses or fails.
    """

    def __init__(self, session: SparkSession, url: str) -> None:
        self._jvm: Any = session.sparkContext._jvm
        self._gateway: Any = session.sparkContext._gateway
        self._conf: Any = session.sparkContext._jsc.hadoopConfiguration()
        self.url = url.rstrip("/")
        with self._told(""):
            self._files = self._path("").getFileSystem(self._conf)

    def __str__(self) -> str:
        return self.url

    @property
    def removal(self) -> str:
        """The shell command with which a user can remove the directory."""
        return f"hadoop fs -rm -r {shlex.quote(self.url)}"

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._url(name))

    def _url(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            _, reason, fix = described(causes_of(error))
            fix = f"{fix}; {AGAIN}" if fix else OTHER_FIX
            raise RunError.of("R684", path=self._url(name), reason=reason, fix=fix) from error

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        path = self._path(name)
        with self._told(name):
            if not self._files.exists(path):
                return None
            if self._files.getFileStatus(path).getLen() > MAX_FILE_BYTES:
                raise RunError.of(
                    "R616", path=f"{self.url}/{name}", done="read", reason=f"it is larger than {MAX_FILE_BYTES} bytes"
                )
            stream = self._files.open(path)
            try:
                return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()

    def write(self, name: str, content: bytes) -> None:
        """Replace the content of a file in one step. A reader sees the old content or the new one."""
        new, path = self._path(f"{name}.new"), self._path(name)
        with self._told(name):
            stream = self._files.create(new, True)
            stream.write(bytearray(content))
            stream.close()
            kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            options = self._gateway.new_array(kind, 1)
            options[0] = kind.OVERWRITE
            self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._conf).rename(
                new, path, options
            )

    def names(self, name: str) -> list[str]:
        """Return the names in a directory; empty if there is no such directory."""
        path = self._path(name)
        with self._told(name):
            if not self._files.exists(path):
                return []
            return [status.getPath().getName() for status in self._files.listStatus(path)]

    def clear(self) -> None:
        """Remove everything in the directory."""
        self.remove("")

    def remove(self, name: str) -> None:
        """Remove a file, or a directory and everything in it, if it exists."""
        with self._told(name):
            self._files.delete(self._path(name), True)

    def fetch(self, name: str, to: Path) -> None:
        """Copy a directory to this machine.

        Args:
            name: Name of the directory. Nothing is copied if there is no such directory.
            to: Path of the copy, which must not exist yet.
        """
        path = self._path(name)
        with self._told(name):
            if self._files.exists(path):
                self._files.copyToLocalFile(False, path, self._local(to), True)  # no files with Hadoop's checksums

    def put(self, source: Path, name: str) -> None:
        """Copy a directory of this machine to `name`. An existing directory of that name is replaced."""
        self.remove(name)
        with self._told(name):
            self._files.copyFromLocalFile(False, True, self._local(source), self._path(name))

    def _local(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path.absolute().as_uri())


def directory_at(session: SparkSession, place: str) -> Directory:
    """Return the directory at a path or URL. Hadoop is used for URLs only, since each of its calls takes longer."""
    return HadoopDirectory(session, place) if "://" in place else LocalDirectory(Path(place))
