/* A translator as *state that writes into event_log, its watcher too. */
#ifndef RLS_TEST_RECORD_FIXTURE_H
#define RLS_TEST_RECORD_FIXTURE_H

#include "event_log.h"

extern struct event_log event_log;

/* The log's id of a text. */
rls_string_id log_string(const char *text);

int set_up(void **state);
int tear_down(void **state);

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
