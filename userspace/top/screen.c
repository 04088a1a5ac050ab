#include "userspace/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define END_OF_LINE "\033[K\n"
#define END_OF_SCREEN "\033[J"

static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
#define DEADLY_COUNT (sizeof(deadly) / sizeof(deadly[0]))

static struct {
	volatile sig_atomic_t on;
	struct termios before;
	int messages; /* what waits for stderr; -1: nothing does */
	int stderr_before;
} screen = {.messages = -1, .stderr_before = -1};

bool rls_screen_is_there(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Async-signal-safe. */
static void screen_write(const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t written = write(STDOUT_FILENO, text, bytes);

		if (written < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (written > 0) {
			text += written;
			bytes -= (size_t)written;
		}
	}
}

static void screen_restore(void)
{
	if (!screen.on)
		return;
	screen.on = 0;
	screen_write(LEAVE, sizeof(LEAVE) - 1);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

static void restore_and_die(int number)
{
	screen_restore();
	raise(number); /* the handler is gone: SA_RESETHAND */
}

static void watch_deadly(void)
{
	struct sigaction action = {.sa_handler = restore_and_die,
				   .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

	for (size_t i = 0; i < DEADLY_COUNT; i++)
		sigaction(deadly[i], &action, NULL);
}

static void hold_messages(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	screen.messages = memfd_create("messages", MFD_CLOEXEC);
	if (screen.messages < 0)
		return;
	screen.stderr_before = dup(STDERR_FILENO);
	fflush(stderr);
	dup2(screen.messages, STDERR_FILENO);
}

static void release_messages(void)
{
	char text[4096];
	ssize_t bytes;

	if (screen.messages < 0)
		return;
	fflush(stderr);
	dup2(screen.stderr_before, STDERR_FILENO);
	close(screen.stderr_before);
	lseek(screen.messages, 0, SEEK_SET);
	while ((bytes = read(screen.messages, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)bytes) < 0)
			break;
	close(screen.messages);
	screen.messages = screen.stderr_before = -1;
}

int rls_screen_enter(void)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &screen.before))
		return -errno;
	raw = screen.before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* the shell would get a terminal like this one */
	watch_deadly();
	screen.on = 1;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)) {
		screen.on = 0;
		return -errno;
	}
	hold_messages();
	screen_write(ENTER, sizeof(ENTER) - 1);
	return 0;
}

void rls_screen_leave(void)
{
	screen_restore();
	release_messages();
}

struct rls_screen_size rls_screen_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		return (struct rls_screen_size){80, 24};
	return (struct rls_screen_size){size.ws_col, size.ws_row};
}

/* Written at once, so that nothing flickers: each line is cleared at its end, not before. */
void rls_screen_show(const char *text, size_t bytes)
{
	char *whole = NULL;
	size_t whole_bytes;
	FILE *out = open_memstream(&whole, &whole_bytes);

	if (!out)
		return;
	fputs(HOME, out);
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '\n')
			fputs(END_OF_LINE, out);
		else
			putc(text[i], out);
	}
	fputs(END_OF_SCREEN, out);
	if (!fclose(out))
		screen_write(whole, whole_bytes);
	free(whole);
}

int rls_screen_key(void)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char key;
	ssize_t bytes;

	if (!screen.on || poll(&fd, 1, 0) <= 0)
		return 0;
	bytes = read(STDIN_FILENO, &key, 1);
	if (bytes == 1)
		return key;
	return bytes < 0 && (errno == EINTR || errno == EAGAIN) ? 0 : RLS_SCREEN_GONE;
}
