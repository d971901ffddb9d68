"""An application with an exactly-once sink goes on from an older backup, as its refusal says."""

import shutil
from pathlib import Path

import pytest

from support.kafka import Broker
from support.kafka_delivery import DEADLINE_S, PORT, Delivery
from wallaroo_runtime.storage.outbox.position import read_position

pytestmark = pytest.mark.kafka


def test_an_older_backup_goes_on_as_its_refusal_says(broker: Broker, tmp_path: Path) -> None:
    """The output since the backup is in the topic twice."""
    delivery = Delivery(tmp_path / "first", broker)
    delivery.publish()
    delivery.start()
    delivery.wait_delivered()
    delivery.stop()
    shutil.copytree(delivery.root / "outbox", tmp_path / "copy" / "outbox")
    delivery.start()
    delivery.publish(70)
    delivery.wait_delivered()
    delivery.stop()
    restored = Delivery(tmp_path / "copy", broker, delivery.topic)
    restored.sent, restored.batch = list(delivery.sent)[:50], delivery.batch - 1
    try:
        assert restored.start().wait(DEADLINE_S) == 1
        group = read_position(restored.root / "outbox", PORT).sender
        assert f"--delete --group {group}` lets it send its output again" in restored.status()["diagnostics"][-1]["fix"]
        restored.forget()
        restored.start()
        restored.publish()
        restored.wait_delivered()
    finally:
        restored.close()
