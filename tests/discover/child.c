#include "tests/discover/child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(const char *python, const char *folder, const char *program, const int *input,
		   const int *output)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(input[0], STDIN_FILENO);
	dup2(output[1], STDOUT_FILENO);
	if (!chdir(folder))
		execl(python, python, "-c", program, (char *)NULL);
	_exit(127);
}

bool child_start(struct child *child, const char *python, const char *folder, const char *program)
{
	int input[2], output[2];
	char line[64];

	if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		return false;
	child->pid = fork();
	if (child->pid == 0)
		become(python, folder, program, input, output);
	close(input[0]);
	close(output[1]);
	child->to = input[1];
	child->from = output[0];
	while (child_line(child, line, sizeof(line)))
		if (!strcmp(line, "ready"))
			return true;
	child_stop(child);
	return false;
}

bool child_line(struct child *child, char *line, size_t size_bytes)
{
	size_t length = 0;
	char letter;

	while (read(child->from, &letter, 1) == 1) {
		if (letter == '\n') {
			line[length] = '\0';
			return true;
		}
		if (length + 1 < size_bytes)
			line[length++] = letter;
	}
	return false;
}

void child_say(struct child *child, const char *line)
{
	if (write(child->to, line, strlen(line)) < 0 || write(child->to, "\n", 1) < 0)
		return;
}

void child_stop(struct child *child)
{
	close(child->to);
	close(child->from);
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
}
