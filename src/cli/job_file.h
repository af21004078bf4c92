/*
 * job_file.h: a job of the daemon where a command takes files: what its ring holds, or the last of it, as a file for the time
 * of the command.
 */
#ifndef CLI_JOB_FILE_H
#define CLI_JOB_FILE_H

#include "cli/command.h"

/* Makes it, and puts it before the files of the command line; says what went wrong. */
bool job_file_make(struct args *args);
/* It is not needed any more, if it is there. */
void job_file_drop(struct args *args);

#endif
