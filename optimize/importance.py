"""How much each dimension of a search mattered."""

from __future__ import annotations

import warnings

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState


def importances(study: optuna.Study) -> dict[str, float]:
    """Return each dimension's share in telling the best quarter of the trials from the rest, the greatest first.

    PED-ANOVA (arXiv 2304.10255) over the score. Empty while there are fewer than four different finished trials.
    """
    finished = [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if "duplicate_of" not in trial.user_attrs
    ]
    if len(finished) < 4 or len({trial.values[0] for trial in finished}) < 2:
        return {}
    # A copy without repetitions: they would count a configuration as often as it was wished for.
    copy = optuna.create_study(directions=["maximize"])
    copy.add_trials(
        [
            optuna.create_trial(params=trial.params, distributions=trial.distributions, value=trial.values[0])
            for trial in finished
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PED-ANOVA warns of small studies, which this one says in words
        return get_param_importances(copy, evaluator=PedAnovaImportanceEvaluator(target_quantile=0.25))
