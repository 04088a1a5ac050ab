/* Screen: sets the terminal up for a live view, and restores it afterwards.
 *
 * It uses the alternate screen, without a cursor; keys arrive at once and are not echoed.
 * rls_screen_leave restores the terminal, and so do fatal signals, except SIGKILL. Messages on
 * stderr wait until then, if stderr is a terminal. One screen for each process.
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
