"""The certificates and keys of services: wrong ones are refused before a service or a driver starts."""

from pathlib import Path

import pytest

from support.service import certified, code_of
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.peer.standalone import ServiceOptions, listen_of
from wallaroo_runtime.service.credential import make_token


@pytest.mark.slow
def test_certificates_and_keys_are_checked(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = certified(tmp_path / "other")
    damaged, bundle = tmp_path / "damaged.pem", tmp_path / "bundle.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
    bundle.write_bytes(certificate.read_bytes() * 300)
    listen, _ = listen_of("egress", ServiceOptions(tmp_path, "127.0.0.1:0", None, bundle, key))
    assert (listen.certificate, listen.key) == (bundle.read_bytes(), key.read_bytes())
    wrong = {
        (damaged, key): f"certificate {damaged} is not usable; it has no certificate, or a damaged one",
        (key, key): f"certificate {key} is not usable; it has no certificate",
        (certificate, other): f"private key {other} is not usable; it does not belong to {certificate}",
    }
    for files, text in wrong.items():
        with pytest.raises(RunError, match=f"R716 {text}.*\n *fix: give "):
            listen_of("gateway", ServiceOptions(tmp_path, "127.0.0.1:0", None, *files))
    make_token(tmp_path / "mine")
    remote = RemoteOptions(egress="127.0.0.1:1", token_file=tmp_path / "mine", authority=damaged)
    assert code_of(remote.check) == "R716"
