/* The commands: one file each, one function each.
 *
 * argv[0] is "rlscope-bpf NAME" for messages. The result is the exit status:
 * 0 done, 1 failed, 2 bad usage, 3 a damaged trace was read in part, 4 compare: a condition
 * of --fail-if holds.
 */
#ifndef RLS_COMMANDS_H
#define RLS_COMMANDS_H

int rls_command_attach(int argc, char **argv);
int rls_command_run(int argc, char **argv);
int rls_command_report(int argc, char **argv);
int rls_command_compare(int argc, char **argv);
int rls_command_dump(int argc, char **argv);
int rls_command_probes(int argc, char **argv);
int rls_command_check(int argc, char **argv);
int rls_command_calibrate(int argc, char **argv);
int rls_command_monitor(int argc, char **argv);
int rls_command_top(int argc, char **argv);

enum {
	RLS_EXIT_DONE = 0,
	RLS_EXIT_FAILED = 1,
	RLS_EXIT_USAGE = 2,
	RLS_EXIT_DAMAGED = 3,
	RLS_EXIT_WORSE = 4,
};

#endif
