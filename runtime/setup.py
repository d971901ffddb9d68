"""Puts the Go SDK into the wheel, where `wallaroo build` finds it when there is no checkout."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SDK = Path(__file__).resolve().parents[1] / "api" / "go"
LEFT_OUT = shutil.ignore_patterns("*_test.go", "testdata", "*.test", "*.prof")


class BuildWithSdk(build_py):
    """Copies `api/go` to `wallaroo_runtime/_sdk/go`; an editable installation uses the checkout itself."""

    def run(self) -> None:
        """Build the package."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "wallaroo_runtime" / "_sdk" / "go"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(SDK, target, ignore=LEFT_OUT)


setup(cmdclass={"build_py": BuildWithSdk})
