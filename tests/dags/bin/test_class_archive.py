"""bin/class-archive and the wrapper that uses it: an archive that fits, or jobs as without one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dags.fake_spark import REPOSITORY, FakeSpark, write_script

SPARK = """#!/bin/sh
# a JVM whose options are quoted as Spark's launcher reads them; it takes every archive
env > {root}/environment
for argument; do printf '%s\\n' "$argument"; done > {root}/arguments
eval "set -- ${{SPARK_SUBMIT_OPTS:-}}"
for option; do
    printf '%s\\n' "$option"
    case $option in -XX:ArchiveClassesAtExit=*) echo classes > "${{option#*=}}" ;; esac
done > {root}/options
cat {root}/options
if [ -f {root}/ends/rehearse ]; then . {root}/ends/rehearse; fi
"""


class Project:
    """A copy of the scripts and settings, with a Java and a Spark that only note what they are asked."""

    def __init__(self, spark: FakeSpark, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.java = folder.parent / "jdk"
        for name in ("bin", "conf"):
            shutil.copytree(REPOSITORY / name, folder / name)
        (folder / "jobs").mkdir()
        for name in ("ingest", "rehearse"):
            (folder / "jobs" / f"{name}.py").touch()
        write_script(self.java / "bin" / "java", "#!/bin/sh\n")
        (self.java / "release").write_text('JAVA_VERSION="17.0.1"\n')
        self.spark_jars = spark.venv / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars"
        self.spark_jars.mkdir()
        (self.spark_jars / "spark-1.jar").touch()
        spark.script(SPARK.format(root=spark.root))

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"JAVA_HOME": str(self.java), "EPSJOIN_CLUSTER_DIR": str(self.folder / "no-cluster")}
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            env=os.environ | own | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def make(self) -> str:
        done = self.run("class-archive", "make")
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def archives(self) -> list[Path]:
        return sorted((self.folder / ".cache" / "classes").glob("*.jsa"))

    def submit(self, *before: str, **environment: str) -> list[str]:
        """Submit a job; return the options of its JVM."""
        (self.spark.root / "options").unlink(missing_ok=True)
        done = self.run("spark-submit", *before, self.job, **environment)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
        return (self.spark.root / "options").read_text().splitlines()

    @property
    def job(self) -> str:
        return str(self.folder / "jobs" / "ingest.py")

    @property
    def settings(self) -> Path:
        arguments = (self.spark.root / "arguments").read_text().splitlines()
        return Path(arguments[arguments.index("--properties-file") + 1])


@pytest.fixture
def project(fake_spark: FakeSpark, tmp_path: Path) -> Project:
    return Project(fake_spark, tmp_path / "my project")


def test_spark_submit__takes_the_class_archive_and_a_class_path_of_jars_alone(project: Project) -> None:
    project.make()
    (archive,) = project.archives
    options = project.submit()
    assert options[:2] == [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
    assert f"-Dlog4j2.configurationFile={project.folder}/conf/log4j2.properties" in options
    folder = Path(project.spark.environment["SPARK_CONF_DIR"])
    assert folder.is_dir()
    assert not list(folder.iterdir())
    conf = project.folder / "conf"
    assert project.settings.read_text() == "".join(
        (conf / name).read_text() for name in ("spark-defaults.conf", "small.conf")
    )


def test_spark_submit__keeps_a_persons_settings_and_options_beside_the_archive(
    project: Project, tmp_path: Path
) -> None:
    project.make()
    (tmp_path / "more.conf").write_text("spark.driver.extraJavaOptions -Dmine\n")
    options = project.submit(EPSJOIN_CONF=str(tmp_path / "more.conf"), SPARK_SUBMIT_OPTS="-Dalso=mine")
    assert options[0] == f"-XX:SharedArchiveFile={project.archives[0]}"
    assert options[-1] == "-Dalso=mine", "the last option wins"
    assert project.settings.read_text().endswith("\nspark.driver.extraJavaOptions -Dmine\n")


def change_java(project: Project) -> dict[str, str]:
    (project.java / "release").write_text('JAVA_VERSION="17.0.2"\n')
    return {}


def change_jars(project: Project) -> dict[str, str]:
    (project.spark_jars / "spark-1.jar").rename(project.spark_jars / "spark-2.jar")
    return {}


def cut_short(project: Project) -> dict[str, str]:
    project.archives[0].write_text("half")
    return {}


def take_own_settings(project: Project) -> dict[str, str]:
    (project.folder / "own").mkdir()
    return {"SPARK_CONF_DIR": str(project.folder / "own")}


def take_unnamed_java(project: Project) -> dict[str, str]:
    """A Java that does not say which it is."""
    shutil.copytree(project.java / "bin", project.folder / "java" / "bin")
    return {"JAVA_HOME": str(project.folder / "java")}


def remove(project: Project) -> dict[str, str]:
    shutil.rmtree(project.folder / ".cache" / "classes")
    return {}


@pytest.mark.parametrize(
    "change", [change_java, change_jars, cut_short, take_own_settings, take_unnamed_java, remove]
)
def test_spark_submit__starts_as_without_an_archive_where_none_fits(
    project: Project, change: Callable[[Project], dict[str, str]]
) -> None:
    project.make()
    environment = change(project)
    assert project.submit(**environment) == []
    conf = project.folder / "conf"
    assert project.settings == conf / "small.conf"
    assert project.spark.environment["SPARK_CONF_DIR"] == environment.get("SPARK_CONF_DIR", str(conf))


def test_spark_submit__keeps_the_folder_of_settings_for_clusters_that_ship_it(project: Project) -> None:
    project.make()
    write_script(project.spark.venv / "bin" / "python", "#!/bin/sh\necho /ship/epsjoin-1.tar.gz\n")
    to = ("--conf", "spark.driver.host=here", "--master")
    assert project.submit(*to, "yarn") == []
    assert project.spark.environment["SPARK_CONF_DIR"] == str(project.folder / "conf")
    assert project.submit(*to, "spark://there:7077") != []


def test_spark_submit__wants_the_drivers_address_with_an_archive_too(project: Project) -> None:
    project.make()
    done = project.run("spark-submit", "--master", "spark://there:7077", project.job)
    assert done.returncode == 2
    assert "cannot reach a driver at 127.0.0.1" in done.stderr


def test_class_archive__is_made_once_and_again_for_another_java(project: Project) -> None:
    project.make()
    (first,) = project.archives
    assert "nothing to do" in project.make()
    change_java(project)
    assert project.run("class-archive", "check").returncode == 1
    assert "nothing to do" not in project.make()
    assert first in project.archives
    assert len(project.archives) == 2


def test_class_archive__removes_what_is_left_of_killed_ones_and_of_old_jars(project: Project) -> None:
    project.make()
    change_jars(project)
    (old,) = project.archives
    killed = old.with_name("making.123")
    at_work = old.with_name("making.456")
    for folder in (killed, at_work):
        folder.mkdir()
        (folder / "classes").touch()
    os.utime(old, (0, 0))
    os.utime(killed, (0, 0))
    project.make()
    assert not old.exists()
    assert not killed.exists()
    assert at_work.exists(), "two at once do no harm"
    assert len(project.archives) == 1


def test_class_archive__of_a_file_cut_short_is_made_anew(project: Project) -> None:
    project.make()
    whole = project.archives[0].read_text()
    cut_short(project)
    project.make()
    assert [archive.read_text() for archive in project.archives] == [whole]


@pytest.mark.parametrize("end", ["kill -KILL $PPID; exit 1", "kill -KILL $$", "exit 3"])
def test_class_archive__of_a_run_that_did_not_end_well_is_not_kept(project: Project, end: str) -> None:
    (project.spark.root / "ends" / "rehearse").write_text(f"echo the reason\n{end}\n")
    assert project.run("class-archive", "make").returncode != 0
    assert project.archives == []
    (project.spark.root / "ends" / "rehearse").unlink()
    project.make()
    assert len(project.archives) == 1


def test_class_archive__says_why_it_could_not_be_made(project: Project) -> None:
    (project.spark.root / "ends" / "rehearse").write_text("echo the reason\nexit 3\n")
    done = project.run("class-archive", "make")
    assert "the reason" in done.stderr
    assert done.stderr.endswith("did not run to their end; what they printed stands above\n")


def test_class_archive__is_made_of_this_projects_settings_alone(project: Project, tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text("spark.driver.memory 7g\n")
    own = {"EPSJOIN_CONF": str(tmp_path / "more.conf"), "EPSJOIN_MASTER": "yarn", "EPSJOIN_PROFILE": "large"}
    assert project.run("class-archive", "make", SPARK_CONF_DIR=str(tmp_path), **own).returncode == 0
    assert len(project.archives) == 1
    assert "7g" not in project.settings.read_text()


def test_class_archive__that_java_does_not_make_is_no_error(project: Project) -> None:
    project.spark.script("#!/bin/sh\n")
    assert "this Java makes none" in project.make()
    assert project.archives == []
