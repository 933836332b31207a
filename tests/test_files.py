"""Locks: one at a time, whoever removes the file, and what is said while one waits."""

import time
from concurrent.futures import ThreadPoolExecutor

from epcore.files import alone


def test_a_lock_that_each_holder_removes_is_held_by_one_at_a_time(tmp_path):
    lock, inside, most = tmp_path / "lock", [], []

    def enter(number):
        with alone(lock, ""):
            inside.append(number)
            most.append(len(inside))
            (tmp_path / "work").write_text(str(number))  # others have time to come in
            inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(400)))
    assert (len(most), max(most)) == (400, 1)
    assert not lock.exists()


def test_waiting_is_said_once_and_by_no_one_who_need_not_wait(tmp_path, capsys):
    lock, said = tmp_path / "lock", ""

    def enter(waiting):
        with alone(lock, waiting):
            pass

    with ThreadPoolExecutor(1) as pool:
        with alone(lock, "the first waits"):
            second = pool.submit(enter, "the second waits")
            deadline = time.monotonic() + 60
            while not said and time.monotonic() < deadline:
                time.sleep(0.01)
                said = capsys.readouterr().err
        second.result(60)
    assert said + capsys.readouterr().err == "the second waits\n"
