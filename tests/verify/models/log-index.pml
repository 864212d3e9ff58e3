/*
 * Append, crash, index, replay, and readers without the mutex (PROTOCOL 6, 9).
 *
 * A writer appends a line, then updates the two index entries the line is about, then moves `applied`, all
 * under the mutex, and may be killed between any two of these steps. The next writer applies the tail past
 * `applied` before anything else. A reader takes `applied`, then the index, then the tail it lays over; what
 * it sees must be the state after some prefix of the log: both entries of one line, or neither.
 *
 * MUTANT: the reader takes the tail from where `applied` stands after it has read the index.
 */
#ifndef LINES
#define LINES 3
#endif

byte log = 0;        /* lines in the log; line n sets both entries to n */
byte a = 0;          /* index entry one */
byte b = 0;          /* index entry two */
byte applied = 0;
bool locked = false;
byte kills = 0;

inline maybeDie() {
  if
  :: skip
  :: kills < 2 -> atomic { kills++; locked = false }; goto dead
  fi
}

proctype Writer() {
  do
  :: log < LINES ->
    atomic { !locked -> locked = true };
    /* catch up with whoever died */
    if
    :: applied < log ->
      a = log; maybeDie();
      b = log; maybeDie();
      applied = log
    :: else
    fi;
    maybeDie();
    if
    :: log < LINES ->
      log++; maybeDie();
      a = log; maybeDie();
      b = log; maybeDie();
      applied = log; maybeDie()
    :: else
    fi;
    locked = false
  :: else -> break
  od;
dead:
  skip
}

proctype Reader() {
  byte from, seenA, seenB, end;
  byte n = 0;
  do
  :: n < 2 ->
    n++;
    from = applied;
    seenA = a;
    seenB = b;
#ifdef MUTANT
    from = applied;
#endif
    end = log;
    /* the last line of the tail has the last word on both entries */
    if
    :: end > from -> seenA = end; seenB = end
    :: else
    fi;
    assert(seenA == seenB);
    assert(seenA <= log)
  :: else -> break
  od
}

init {
  atomic { run Writer(); run Writer(); run Reader() }
}
