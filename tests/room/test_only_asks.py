"""A device that lends nothing, although it has a GPU."""

from __future__ import annotations

from tests.room.world import World


async def test_a_device_that_lends_nothing_only_asks() -> None:
    world = World()
    (otter,) = await world.room(4)
    await world.join("heron", 0, otter)
    await world.run(1)
    (device,) = [device for device in otter.state.devices if device.name == "heron"]
    assert not device.holds_layers
    assert otter.state.pooled_gb == 4
    await world.close()
