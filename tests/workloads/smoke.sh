#!/bin/bash
# smoke.sh PYTHON WORKLOAD STEPS MODULES: two runs with the same seed, one of them with the
# annotations of MODULES and one without, end with the same weights; another seed does not.
set -u
python=$1 workload=$2 steps=$3 modules=$4

needed="gymnasium, mujoco, torch"
[ "$workload" != sb3_ppo.py ] || needed="$needed, stable_baselines3"
if ! "$python" -c "import $needed" 2>/dev/null; then
	echo "$python has no $needed: run scripts/setup workload (or scripts/setup-sb3)"
	exit 77
fi

checksum() {
	"$python" "$workload" --steps "$steps" "$@" | sed -n 's/^checksum //p'
}

plain=$(checksum --no-annotate)
annotated=$(PYTHONPATH=$modules checksum)
other=$(checksum --no-annotate --seed 1)
echo "plain $plain annotated $annotated other seed $other"
[ -n "$plain" ] && [ "$plain" = "$annotated" ] && [ "$plain" != "$other" ]
