#include "userspace/record/probes/modified_files.h"

#include <stdint.h>
#include <sys/inotify.h>
#include <unistd.h>

int rls_modified_files_open(void)
{
	return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

int rls_modified_files_watch(int fd, const char *path)
{
	return fd < 0 ? -1 : inotify_add_watch(fd, path, IN_MODIFY);
}

void rls_modified_files_unwatch(int fd, int number)
{
	if (fd >= 0 && number >= 0)
		inotify_rm_watch(fd, number);
}

size_t rls_modified_files_read(int fd, int *numbers, size_t room)
{
	_Alignas(struct inotify_event) uint8_t events[4096];
	size_t count = 0;
	ssize_t bytes;

	if (room > sizeof(events) / sizeof(struct inotify_event))
		room = sizeof(events) / sizeof(struct inotify_event);
	/* Files' events have no names: all are as long. */
	bytes = fd < 0 ? 0 : read(fd, events, room * sizeof(struct inotify_event));
	for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= bytes;) {
		const struct inotify_event *event = (const void *)(events + at);

		if (event->mask & IN_MODIFY)
			numbers[count++] = event->wd;
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return count;
}
