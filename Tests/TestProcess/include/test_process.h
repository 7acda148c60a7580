#ifndef EASYNETWORK_TEST_PROCESS_H
#define EASYNETWORK_TEST_PROCESS_H

/// The number of descriptors that a program of tests gets, if it may have them: each server, client and connection of the
/// tests that run at once takes some.
#define EASYNETWORK_TEST_DESCRIPTORS 10240

/// The number of tests that run at once, unless the environment has another one.
#define EASYNETWORK_TESTS_AT_ONCE "8"

#endif
