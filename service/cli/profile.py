"""contextforge profile: what cosines of an embedder mean on the documented scale."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.administration import administer
from service.cli.output import AsJson, print_json
from service.errors import InvalidInput

if TYPE_CHECKING:
    from service.embedding.profile import Profile
    from service.evaluation.profiles import FittedProfile

profile = typer.Typer(
    help="Profiles of embedders: from raw cosine to the documented scale.", no_args_is_help=True
)

Version = Annotated[
    str, typer.Argument(metavar="VERSION", help="As `tenants list` shows it: MODEL@REVISION/DIM.")
]


@profile.command("show")
def show_profiles(as_json: AsJson = False) -> None:
    """Show the points of every embedder; one without points is taken as it is."""
    from service.db.profiles import list_profiles

    with administer() as connection:
        found = list_profiles(connection)
    if as_json:
        print_json([asdict(each) for each in found])
        return
    for each in found:
        typer.echo(f"{each.embedder_version}, {each.tenants} tenants")
        pairs = list(zip(each.raw_cosines, each.calibrated_cosines, strict=True))
        for raw, calibrated in pairs:
            typer.echo(f"  {raw:6.3f} -> {calibrated:.3f}")
        if not pairs:
            typer.echo("  as it is: no points")


@profile.command("set")
def set_points(
    version: Version,
    points: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="JSON with raw_cosines and calibrated_cosines."),
    ] = None,
    identity: Annotated[
        bool, typer.Option("--identity", help="No points: cosines are taken as they are.")
    ] = False,
) -> None:
    """Store the points of a file as an embedder's profile, or none with --identity."""
    from service.embedding.profile import Profile

    if (points is None) is not identity:
        raise InvalidInput("Give a file of points, or --identity for none.")
    _store(version, Profile() if points is None else _read_points(points))
    typer.echo(f"The profile of {version} is set.")


@profile.command("fit")
def fit(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="BEIR folders, two or more.")
    ],
    model: Annotated[
        str | None, typer.Option(help="Another model than EMBEDDING_MODEL, by name.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Store it as the model's profile.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a profile to judged questions: those of one folder are strangers to the others."""
    from service.cli.ingesting import show_progress
    from service.embedding import load_embedder
    from service.evaluation.profiles import embed_folder, fit_sets
    from service.settings import load_settings

    embedder = load_embedder(model or load_settings().embedding_model)
    with show_progress("embed", total=None) as on_progress:
        sets = {
            str(folder): embed_folder(folder, embedder, on_progress=on_progress)
            for folder in folders
        }
    fitted = fit_sets(sets)
    if save:
        _store(embedder.version, fitted.profile)
    if as_json:
        print_json({"embedder_version": embedder.version, **asdict(fitted)})
    else:
        _print_fit(embedder.version, fitted)


def _print_fit(version: str, fitted: FittedProfile) -> None:
    typer.echo(version)
    points = zip(fitted.profile.raw_cosines, fitted.profile.calibrated_cosines, strict=True)
    for raw, calibrated in points:
        typer.echo(f"  {raw:6.3f} -> {calibrated:.3f}")
    typer.echo(f"Questions that were not fitted on, with the gate at cosine {fitted.gate:.3f}:")
    for name, share in fitted.refused.items():
        typer.echo(f"  {share:6.1%} refused of {name}")
    for name, share in fitted.let_through.items():
        typer.echo(f"  {share:6.1%} let through: {name}")


def _store(version: str, points: Profile) -> None:
    from service.db.profiles import set_profile

    with administer() as connection:
        set_profile(
            connection,
            version,
            raw_cosines=points.raw_cosines,
            calibrated_cosines=points.calibrated_cosines,
        )


def _read_points(path: Path) -> Profile:
    from service.embedding.profile import make_profile

    try:
        values = json.loads(path.read_bytes())
        return make_profile(values["raw_cosines"], values["calibrated_cosines"])
    except OSError as exc:
        raise InvalidInput(f"{path}: cannot be read ({exc.strerror}).") from exc
    except (ValueError, KeyError, TypeError) as exc:
        raise InvalidInput(
            f"{path}: not a JSON object with the lists raw_cosines and calibrated_cosines.",
            hint="contextforge profile show --json prints such lists.",
        ) from exc
