/*
 * The mutex and its death (PROTOCOL 1-3).
 *
 * Processes open the lock file by name, lock what they opened, and compare it with what the name means now.
 * The lock belongs to the open file and goes when its process dies. Somebody may replace the file behind
 * their backs while nobody holds it (a control plane that was removed and made anew). Never two at once in the
 * critical section.
 *
 * MUTANT 1: the comparison after locking is left out, so a process that opened the old file gets in beside one
 * that opened the new file.
 */
#ifndef PROCS
#define PROCS 3
#endif
#define INODES 3

byte named = 0;              /* which inode the path names */
byte next = 1;
byte lockedBy[INODES];       /* 0: free, else process + 1 */
byte inside = 0;             /* processes that believe they hold the store's mutex */
byte deaths = 0;

proctype Process(byte me) {
  byte mine;
  byte rounds = 0;
  do
  :: rounds < 2 ->
    rounds++;
    mine = named;                                           /* open by name */
again:
    atomic { lockedBy[mine] == 0 -> lockedBy[mine] = me + 1 };  /* blocking lock */
#if MUTANT != 1
    if
    :: mine != named ->                                     /* fstat against stat */
      atomic { lockedBy[mine] = 0; mine = named };
      goto again
    :: else
    fi;
#endif
    inside++;
    assert(inside == 1);
    if
    :: skip
    :: deaths < 2 ->                                        /* SIGKILL inside the critical section */
      atomic { deaths++; inside--; lockedBy[mine] = 0 };
      goto dead
    fi;
    atomic { inside--; lockedBy[mine] = 0 }
  :: else -> break
  od;
dead:
  skip
}

/* Against the rules: removes the lock file while nobody holds it; the next opener makes a new one. */
proctype Vandal() {
  do
  :: next < INODES -> atomic { lockedBy[named] == 0 -> named = next; next++ }
  :: break
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. PROCS - 1) { run Process(i) }
    run Vandal()
  }
}
