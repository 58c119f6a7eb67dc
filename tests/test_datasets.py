"""Data sets: both forms of a file, the order of draws, and downloads that fail in every way."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from jacridge import datasets

pytest.importorskip("pooch")

PLAIN_WOOD = (
    "Length,Curl,KinkIndex,NumberKink,TotalKinkAngle,Width\n0.068,0,0,0,0,0\n0.386,0.02,0,0,0,26\n"
)
RAW_WOOD = (
    "Length,Curl ,KinkIndex,NumberKink,TotalKinkAngle,Width\r\n"
    "0.068, 0.000, 0.0,0 ,  0,0\r\n0.3860,0.02,0,0,0.00,26\r\n"
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.files.get(self.path.removeprefix("/"))
        self.server.asked.append(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut_after])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    """A web server here: `files` maps names to bytes, `cut_after` breaks answers off."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.files, http.asked, http.cut_after = {}, [], None
        http.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield http
        http.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch, server):
    """An empty cache folder and no folder of one's own; downloads come from `server`."""
    monkeypatch.delenv("JACRIDGE_DATA", raising=False)
    monkeypatch.setenv("JACRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JACRIDGE_MIRROR", server.url)
    return tmp_path / "cache"


@pytest.fixture
def small_wood(monkeypatch, server):
    """The wood fibres, cut to two rows, on the server."""
    return put_on(server, monkeypatch, "wood_fibres", 2, RAW_WOOD.encode())


def put_on(server, monkeypatch, name, n, body):
    """Serve `body` as the file of a data set of n rows, with its checksum."""
    sha256 = hashlib.sha256(body).hexdigest()
    s = datasets._SOURCES[name] | {"n": n, "sha256": sha256}
    monkeypatch.setitem(datasets._SOURCES, name, s)
    server.files[s["file"]] = body
    return s["file"]


def left_behind(folder):
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


def test_every_row_of_the_list_says_what_a_user_must_know():
    for row in datasets.list_datasets():
        assert {"name", "n", "p", "licence", "citation", "source"} <= set(row)
        assert all(value for value in row.values()), row


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"wood_fibres.*french_2d, got 'iris'"):
        datasets.load("iris")


def test_a_download_is_checked_kept_and_not_repeated(cache, server, small_wood):
    first = datasets.load("wood_fibres")
    second = datasets.load("wood_fibres")

    assert server.asked == ["/wood-fibres.csv"]
    assert left_behind(cache) == ["wood-fibres.csv"]
    np.testing.assert_array_equal(first.X, second.X)


@pytest.mark.parametrize("file", ["wood_fibres.csv", "wood_fibres.csv.gz", "wood-fibres.csv"])
def test_a_folder_of_ones_own_comes_first(tmp_path, cache, server, small_wood, monkeypatch, file):
    body = PLAIN_WOOD.encode()
    (tmp_path / file).write_bytes(gzip.compress(body) if file.endswith("gz") else body)
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))

    assert datasets.fetch("wood_fibres") == tmp_path / file
    assert datasets.folder() == tmp_path
    assert server.asked == []


def test_what_ones_own_folder_has_not_is_downloaded(tmp_path, cache, small_wood, monkeypatch):
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))
    assert datasets.fetch("wood_fibres") == cache / "wood-fibres.csv"


def test_a_folder_of_ones_own_must_exist(tmp_path, monkeypatch):
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"`JACRIDGE_DATA` must name a folder.*nowhere"):
        datasets.load("wood_fibres")


def test_both_forms_of_a_table_give_the_same_numbers(tmp_path, cache, small_wood, monkeypatch):
    raw = datasets.load("wood_fibres")
    (tmp_path / "wood_fibres.csv").write_text(PLAIN_WOOD)
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))
    plain = datasets.load("wood_fibres")

    np.testing.assert_array_equal(raw.X, [[0, 0, 0, 0, 0], [0.02, 0, 0, 0, 26]])
    np.testing.assert_array_equal(raw.y, [0.068, 0.386])
    np.testing.assert_array_equal(raw.X, plain.X)
    np.testing.assert_array_equal(raw.y, plain.y)
    assert raw.feature_names == ("Curl", "KinkIndex", "NumberKink", "TotalKinkAngle", "Width")
    assert raw.target_name == "Length"


def test_quotes_and_the_date_of_the_appliances_table_are_dropped(cache, server, monkeypatch):
    names = datasets._SOURCES["appliances_energy"]["columns"]
    header = ",".join(f'"{name}"' for name in ("date", *names))
    row = ",".join(f'"{value}"' for value in ("2016-01-11 17:00:00", "60", " 30", *range(26)))
    put_on(server, monkeypatch, "appliances_energy", 1, f"{header}\n{row}\n".encode())

    data = datasets.load("appliances_energy")
    assert data.y.tolist() == [60]
    assert data.X.tolist() == [[30, *range(26)]]


def test_the_archive_of_california_becomes_the_table_of_scikit_learn(cache, server, monkeypatch):
    line = b"-122.23,37.88,41.0,880.0,129.0,322.0,126.0,8.3252,452600.0\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        member.size = len(line)
        archive.addfile(member, io.BytesIO(line))
    put_on(server, monkeypatch, "california_housing", 1, packed.getvalue())

    data = datasets.load("california_housing")
    assert data.y.tolist() == [4.526]
    assert data.X.tolist() == [
        [8.3252, 41, 6.984126984126984, 1.0238095238095237, 322, 2.5555555555555554, 37.88, -122.23]
    ]


@pytest.mark.parametrize("index", ["", "34;"])
def test_french_times_become_hours_and_kelvin_becomes_celsius(cache, server, monkeypatch, index):
    """The authors' file starts every line with an unnamed index."""
    text = (
        f"{index and ';'}numer_sta;date;t\n"
        f"{index}7630;20200101000000;281.65\n{index}7630;20200102030000;281.05\n"
    )
    put_on(server, monkeypatch, "french_1d", 2, text.encode())

    data = datasets.load("french_1d")
    assert data.X.tolist() == [[0], [27]]
    np.testing.assert_allclose(data.y, [8.5, 7.9], rtol=1e-13)


def test_french_stations_have_latitude_then_longitude(cache, server, monkeypatch):
    text = (
        ";ID;Nom;Latitude;Longitude;Altitude;numer_sta;date;t\n"
        "0;7005;ABBEVILLE;50.136;1.834;69;7005;20200101030000;273.05\n"
    )
    put_on(server, monkeypatch, "french_2d", 1, text.encode())

    data = datasets.load("french_2d")
    assert data.X.tolist() == [[50.136, 1.834]]
    np.testing.assert_allclose(data.y, [-0.1], rtol=1e-11)  # 273.05 - 273.15 loses four digits


def test_a_file_with_other_columns_is_refused(tmp_path, monkeypatch):
    (tmp_path / "wood_fibres.csv").write_text("Length,Curl\n1,2\n")
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"must have the columns .* got no \['KinkIndex'"):
        datasets.load("wood_fibres")


def test_a_file_with_too_few_rows_is_refused(tmp_path, monkeypatch):
    (tmp_path / "wood_fibres.csv").write_text(PLAIN_WOOD)
    monkeypatch.setenv("JACRIDGE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="must have 25165 rows and 6 columns, got"):
        datasets.load("wood_fibres")


def test_a_wrong_checksum_leaves_no_file(cache, server, small_wood):
    server.files[small_wood] += b"1,2,3,4,5,6\n"
    with pytest.raises(OSError, match=r"`wood_fibres` could not be downloaded: .*sha256"):
        datasets.fetch("wood_fibres")
    assert left_behind(cache) == []


def test_a_connection_cut_in_the_middle_leaves_no_file(cache, server, small_wood):
    server.cut_after = 40
    with pytest.raises(OSError, match="did not return a complete file"):
        datasets.fetch("wood_fibres")
    assert left_behind(cache) == []


def test_a_file_that_is_gone_leaves_no_file(cache, server):
    with pytest.raises(OSError, match="404"):
        datasets.fetch("protein")
    assert left_behind(cache) == []


def test_offline_the_error_says_what_to_do(cache, server, monkeypatch):
    monkeypatch.setenv("JACRIDGE_MIRROR", "http://127.0.0.1:1")  # nobody listens there
    with pytest.raises(OSError, match=r"CASP.csv or protein.csv, to a folder .* JACRIDGE_DATA"):
        datasets.load("protein")
    assert left_behind(cache) == []


def test_a_damaged_file_in_the_cache_is_downloaded_again(cache, small_wood):
    path = datasets.fetch("wood_fibres")
    path.write_text("half a li")
    assert datasets.load("wood_fibres").y.tolist() == [0.068, 0.386]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="file sizes are limited by POSIX calls")
def test_a_full_disk_leaves_no_file(cache, server):
    """A process that may write 100 bytes per file stands for a disk with no room."""
    server.files["bs.csv"] = bytes(10_000)
    code = (
        "import resource, jacridge.datasets as d\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "d.fetch('black_smoke')"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 1
    assert "no space is left in" in run.stderr
    assert "Free some space, or set JACRIDGE_CACHE" in run.stderr
    assert left_behind(cache) == []


def test_cauchy_data_are_drawn_in_the_order_of_the_authors_code():
    np.random.seed(7)  # noqa: NPY002
    X = 3 * np.random.standard_cauchy((20, 1))  # noqa: NPY002
    X_test = 3 * np.random.standard_cauchy((1001, 1))  # noqa: NPY002
    y = np.sin(2 * np.pi * X) + np.random.normal(0, 0.2, (20, 1))  # noqa: NPY002

    split = datasets.cauchy(20, seed=7)
    np.testing.assert_array_equal(split.X, X)
    np.testing.assert_array_equal(split.X_test, X_test)
    np.testing.assert_array_equal(split.y, y[:, 0])
    np.testing.assert_array_equal(split.y_test, np.sin(2 * np.pi * X_test[:, 0]))


@pytest.mark.parametrize("name", [row["name"] for row in datasets.list_datasets()])
def test_the_real_data_are_as_described(paper_data, name):
    row = next(row for row in datasets.list_datasets() if row["name"] == name)
    data = datasets.load(name)
    assert data.X.shape == (row["n"], row["p"])
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    mean, std = {
        "wood_fibres": (0.248466, 0.256174),
        "appliances_energy": (97.694958, 102.522293),
        "california_housing": (2.068558, 1.153928),
        "protein": (7.748528, 6.118245),
        "black_smoke": (1.811902, 0.675809),
        "french_1d": (7.7629, 3.6442),
        "french_2d": (3.2350, 4.3471),
    }[name]
    # The published mean and standard deviation have four to six decimals.
    np.testing.assert_allclose([data.y.mean(), data.y.std()], [mean, std], atol=5e-5)
