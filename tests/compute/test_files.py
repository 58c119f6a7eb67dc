"""A file is written whole or not at all, and nothing else at its path is changed."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from inside import check_place, replaced, separator_of

posix = pytest.mark.skipif(
    sys.platform == "win32", reason="needs modes, links and signals of POSIX"
)


def write(path, text):
    with replaced(path) as beside:
        beside.write_text(text)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    write(tmp_path / "careful", "all of it")
    assert mode_of(tmp_path / "careful") == mode_of(tmp_path / "plain")
    assert (tmp_path / "careful").read_text() == "all of it"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fail_halfway():
        with replaced(str(path)) as beside:
            beside.write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_mode_and_no_copy_is_readable_meanwhile(tmp_path, mode):
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(mode)
    with replaced(path) as beside:
        assert mode_of(beside) & ~mode == 0
        beside.write_text("new")
    assert (path.read_text(), mode_of(path)) == ("new", mode)


@posix
def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    for text in ("first", "second"):
        write(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "there" / "file").read_text() == text


@posix
def test_a_link_into_no_folder_is_refused_beforehand(tmp_path):
    (tmp_path / "link").symlink_to("nowhere/file")
    with pytest.raises(FileNotFoundError, match="There is no such folder"):
        check_place(str(tmp_path / "link"))


@posix
def test_a_fifo_is_written_to_and_stays(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(path.read_text()))
    reader.start()
    write(path, "through")
    reader.join()
    assert heard == ["through"]
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_a_device_is_written_to_and_stays(tmp_path):
    """On a node of its own: a fault here, run by root, must not cost the machine its /dev/null."""
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.write_text("")
    except OSError:
        pytest.skip("only root may make device nodes, and not everywhere")
    check_place(str(path))
    write(path, "nothing is kept")
    assert stat.S_ISCHR(os.stat(path).st_mode)


@posix
def test_the_name_of_an_open_file_is_written_to(tmp_path):
    """A shell that sends stdout to a file holds that file, and must not lose it."""
    with open(tmp_path / "out", "w") as out:
        write(f"/proc/self/fd/{out.fileno()}", "x")
        assert os.fstat(out.fileno()).st_nlink == 1
    assert (tmp_path / "out").read_text() == "x"


@posix
def test_the_umask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    def touched(mask):
        raise AssertionError("the umask is of the whole process, other threads included")

    monkeypatch.setattr(os, "umask", touched)
    write(tmp_path / "file", "x")
    assert (tmp_path / "file").read_text() == "x"


@posix
@pytest.mark.slow
def test_sigterm_removes_the_temporary_file(tmp_path):
    code = (
        f"import sys, time\nfrom {replaced.__module__} import replaced\n"
        "with replaced(sys.argv[1]) as beside:\n"
        "    print('ready', flush=True)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


@posix
def test_the_handler_of_sigterm_is_the_old_one_afterwards(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    write(tmp_path / "file", "x")
    assert signal.getsignal(signal.SIGTERM) == before


def test_files_are_written_from_other_threads(tmp_path):
    worker = threading.Thread(target=write, args=(tmp_path / "file", "x"))
    worker.start()
    worker.join()
    assert (tmp_path / "file").read_text() == "x"


def test_an_empty_name_is_refused():
    with pytest.raises(FileNotFoundError, match="A file to write must have a name, got ''"):
        check_place("")


@pytest.mark.parametrize(
    ("line", "separator"),
    [
        ("a,b;c,d", ","),
        ("a;b", ";"),
        ('"a,b,c";d', ";"),
        ("1,5;2,5;3,5", ";"),
        ("1,2,3", ","),
        ("a|b|c,d", "|"),
        ("a", ","),
    ],
)
def test_the_separator_is_told_from_the_first_line(line, separator):
    assert separator_of(line) == separator
