/* Screen: the terminal while something live is shown on it, and as it was afterwards.
 *
 * The alternate screen, no cursor, keys at once and unseen. It is given back by
 * rls_screen_leave, and by the signals that kill: nothing but SIGKILL leaves it behind.
 * Messages on stderr wait until then, if it is a terminal. One screen a process.
 */
#ifndef RLS_SCREEN_H
#define RLS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct rls_screen_size {
	unsigned int columns, lines;
};

/* Whether stdin and stdout are a terminal. */
bool rls_screen_is_there(void);

/* 0 or -errno. */
int rls_screen_enter(void);
/* May be called more than once. */
void rls_screen_leave(void);

/* 80 × 24 where it is not known. */
struct rls_screen_size rls_screen_size(void);

/* Shows the text, lines ended by '\n', from the upper left corner; what was there is gone. */
void rls_screen_show(const char *text, size_t bytes);

#define RLS_SCREEN_GONE (-1)

/* A key that was pressed, 0, or RLS_SCREEN_GONE: nobody will press one any more. Waits for none. */
int rls_screen_key(void);

#endif
