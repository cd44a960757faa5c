"""MemoryAlarm: one time, replaced by the next one, due once."""

from __future__ import annotations

from retain.host.alarm import MemoryAlarm


async def test_an_alarm_is_not_set_at_first() -> None:
    alarm = MemoryAlarm()
    assert await alarm.get() is None
    assert alarm.take_due(2**53) is False


async def test_setting_an_alarm_replaces_the_time_set_before() -> None:
    alarm = MemoryAlarm()
    await alarm.set(2_000)
    await alarm.set(1_000)
    assert await alarm.get() == 1_000
    await alarm.set(3_000)
    assert await alarm.get() == 3_000


async def test_an_alarm_is_due_from_its_time_on_and_once() -> None:
    alarm = MemoryAlarm()
    await alarm.set(1_000)
    assert alarm.take_due(999) is False
    assert await alarm.get() == 1_000
    assert alarm.take_due(1_000) is True
    assert await alarm.get() is None
    assert alarm.take_due(1_001) is False
