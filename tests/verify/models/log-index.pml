/*
 * Append, crash, index, replay, and readers without the mutex (PROTOCOL 6, 9).
 *
 * A writer appends a line, then updates the index entries the line is about, then moves `applied`, all under the
 * mutex, and may be killed between any two of these steps. The next writer applies the tail past `applied` before
 * anything else. A reader takes `applied`, then the index, then the tail it lays over; what it sees must be the state
 * after some prefix of the log: both entries of one line, or neither. Every line is about entry one, every second
 * line about entry two as well.
 *
 * MUTANT 1: the reader takes the tail from where `applied` stands after it has read the index.
 * MUTANT 2: the next writer does not catch up with one that died.
 */
#ifndef LINES
#define LINES 3
#endif

byte log = 0;        /* lines in the log; line n sets entry one to n, and if n is even entry two */
byte a = 0;          /* index entry one */
byte b = 0;          /* index entry two */
byte applied = 0;
bool locked = false;
byte kills = 0;

/* the last line up to n that is about entry two */
#define even(n) ((n) - ((n) % 2))

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
#if MUTANT != 2
    /* catch up with whoever died */
    if
    :: applied < log ->
      a = log; maybeDie();
      b = even(log); maybeDie();
      applied = log
    :: else
    fi;
#endif
    maybeDie();
    if
    :: log < LINES ->
      log++; maybeDie();
      a = log; maybeDie();
      if
      :: log % 2 == 0 -> b = log; maybeDie()
      :: else
      fi;
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
#if MUTANT == 1
    from = applied;
#endif
    end = log;
    /* the tail has the last word on what its lines are about */
    if
    :: end > from -> seenA = end
    :: else
    fi;
    if
    :: even(end) > from -> seenB = even(end)
    :: else
    fi;
    assert(seenB == even(seenA));
    assert(seenA <= log)
  :: else -> break
  od
}

init {
  atomic { run Writer(); run Writer(); run Reader() }
}
