"""completion.py PROGRAM bash|zsh: completion, from what the program's own --help lists."""
import re
import subprocess
import sys

# What follows an option, by the name of its argument; of other names nothing is known.
FILES = {"FILE", "TRACE"}
FOLDERS = {"DIR", "PATH"}
# Values that the help names: (command or None, option) -> values.
VALUES = {
    (None, "--format"): "text json jsonl csv sqlite html perfetto chrome speedscope pprof folded",
    ("probes", "--format"): "text json", ("check", "--format"): "text json",
    ("compare", "--format"): "text json html",
    ("report", "--by"): "process thread operation phase line function file layer layer-type pass",
    ("report", "--sort"): "time on-cpu gpu corrected error name",
    ("report", "--stacks"): "traced sampled",
    ("compare", "--metric"): "ran wall corrected cpu", ("compare", "--normalise"): "speed none auto",
    (None, "--overhead-budget"): "2% none",
}
OF_FILES = {"report", "compare", "dump"}  # commands whose arguments are files


class Option:
    """An option of a command: its names, its argument's name or '', what it is for."""

    def __init__(self, short, name, argument, purpose):
        self.short, self.name, self.argument, self.purpose = short, name, argument, purpose

    def names(self):
        return [self.short, self.name] if self.short else [self.name]


def printed(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


def commands(program):
    """[(name, purpose)]"""
    return re.findall(r"^  ([a-z]+) +(\S.*)$", printed(program, "--help"), re.M)


def options(program, command):
    found = []
    for line in printed(program, command, "--help").split("\n"):
        option = re.match(r" {2,6}(?:(-\w), )?(--[a-z-]+)(?:=(\S+))?(?: +(\S.*))?$", line)
        if option:
            short, name, argument, purpose = option.groups()
            found.append(Option(short or "", name, argument or "", purpose or ""))
        elif found and re.match(r" {20,}\S", line):
            found[-1].purpose = (found[-1].purpose + " " + line.strip()).strip()
    return found


def values_of(command, option):
    if re.match(r"[a-z]+(\|[a-z]+)+$", option.argument):
        return option.argument.replace("|", " ")
    return VALUES.get((command, option.name)) or VALUES.get((None, option.name), "")


def kind_of(option):
    """What completes an option's argument: pid, file, folder or nothing."""
    name = re.split(r"[^A-Z]", option.argument)[0]
    return ("pid" if name == "PID" else "file" if name in FILES else
            "folder" if name in FOLDERS else "nothing")


BASH = """# bash completion for rlscope-bpf, made from its --help
_rlscope_bpf() {
	local cur prev words=("${COMP_WORDS[@]}") command="" i
	cur=${words[COMP_CWORD]} prev=${words[COMP_CWORD - 1]}
	[ "$prev" != = ] || prev=${words[COMP_CWORD - 2]}
	[ "$cur" != = ] || { prev=${words[COMP_CWORD - 1]} cur=""; }
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${words[i]} in
		-*) ;;
		*) command=${words[i]} && break ;;
		esac
	done
	if [ -z "$command" ]; then
		mapfile -t COMPREPLY < <(compgen -W "%(commands)s --help --version" -- "$cur")
		return
	fi
	if [ "$command" = run ]; then
		for ((i = i + 1; i < COMP_CWORD; i++)); do
			if [ "${words[i]}" = -- ]; then
				declare -F _command_offset >/dev/null && _command_offset $((i + 1))
				return
			fi
		done
	fi
	case $command:$prev in
%(arguments)s
	esac
	case $cur in
	-*)
		case $command in
%(options)s
		esac
		;;
	*)
		case $command in
		%(files)s) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		esac
		;;
	esac
}
complete -o filenames -o bashdefault -F _rlscope_bpf rlscope-bpf
"""


def bash(program):
    generators = {"pid": 'compgen -W "$(cd /proc && echo [0-9]*)"', "file": "compgen -f",
                  "folder": "compgen -d", "nothing": ""}
    arguments, lists = [], []
    for command, _ in commands(program):
        known = options(program, command)
        lists.append("\t\t%s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\") ;;" % (
            command, " ".join(name for option in known for name in option.names())))
        for option in known:
            if not option.argument:
                continue
            values = values_of(command, option)
            generator = "compgen -W '%s'" % values if values else generators[kind_of(option)]
            action = 'mapfile -t COMPREPLY < <(%s -- "$cur") && return' % generator if generator else "return"
            arguments.append("\t%s) %s ;;" % (
                " | ".join("%s:%s" % (command, name) for name in option.names()), action))
    return BASH % {"commands": " ".join(name for name, _ in commands(program)),
                   "arguments": "\n".join(arguments), "options": "\n".join(lists),
                   "files": " | ".join(sorted(OF_FILES))}


ZSH = """#compdef rlscope-bpf
# zsh completion for rlscope-bpf, made from its --help
_rlscope_bpf() {
	local -a commands
	local context state state_descr line
	typeset -A opt_args
	commands=(
%(commands)s
	)
	_arguments -C '(-h --help)'{-h,--help}'[print help]' '(-V --version)'{-V,--version}'[print the version]' \\
		'1: :->command' '*:: :->argument'
	case $state in
	command) _describe command commands ;;
	argument)
		case $line[1] in
%(cases)s
		esac
		;;
	esac
}
_rlscope_bpf "$@"
"""


def zsh_quoted(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "’")


def zsh_option(command, option):
    action = {"pid": "_pids", "file": "_files", "folder": "_files -/", "nothing": " "}[kind_of(option)]
    values = values_of(command, option)
    argument = zsh_quoted(option.argument.lower())
    tail = "[%s]" % zsh_quoted(option.purpose)
    if option.argument:
        tail += ":%s:%s" % (argument, "(%s)" % values if values else action)
    specs = ["'*%s%s%s'" % (option.name, "=" if option.argument else "", tail)]
    if option.short:
        specs.append("'*%s%s%s'" % (option.short, "+" if option.argument else "", tail))
    return specs


def zsh(program):
    cases = []
    for command, _ in commands(program):
        specs = [spec for option in options(program, command) for spec in zsh_option(command, option)]
        specs += ["'*:trace:_files'"] if command in OF_FILES else []
        specs += ["'*::command: _normal'"] if command == "run" else []
        cases.append("\t\t%s)\n\t\t\t_arguments -s \\\n\t\t\t\t%s\n\t\t\t;;" % (
            command, " \\\n\t\t\t\t".join(specs)))
    listed = ["\t\t'%s:%s'" % (name, zsh_quoted(purpose)) for name, purpose in commands(program)]
    return ZSH % {"commands": "\n".join(listed), "cases": "\n".join(cases)}


if __name__ == "__main__":
    sys.stdout.write({"bash": bash, "zsh": zsh}[sys.argv[2]](sys.argv[1]))
