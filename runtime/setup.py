"""Builds the runtime's wheel, which also has the Go SDK and the jar of `java` for machines without a checkout."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SDK = Path(__file__).resolve().parents[1] / "api" / "go"
OPERATORS = Path(__file__).resolve().parent / "build" / "java" / "realtime.jar"
LEFT_OUT = shutil.ignore_patterns("*_test.go", "testdata", "*.test", "*.prof")


class BuildWithSdk(build_py):
    """The build step that copies `api/go` to `_sdk/go` and the jar to `_java`, except for editable installations."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "wallaroo_runtime" / "_sdk" / "go"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(SDK, target, ignore=LEFT_OUT)
            if not OPERATORS.is_file():
                reason = f"{OPERATORS} is missing; run `make setup` first, which builds it"
                raise SystemExit(reason)
            jars = Path(self.build_lib) / "wallaroo_runtime" / "_java"
            jars.mkdir(exist_ok=True)
            shutil.copy(OPERATORS, jars)


setup(cmdclass={"build_py": BuildWithSdk})
