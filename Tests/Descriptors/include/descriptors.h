#ifndef EASYNETWORK_DESCRIPTORS_H
#define EASYNETWORK_DESCRIPTORS_H

/// The number of descriptors that a program of tests gets, if it may have them: each server, client and connection of the
/// tests that run at once takes some.
#define EASYNETWORK_TEST_DESCRIPTORS 10240

#endif
