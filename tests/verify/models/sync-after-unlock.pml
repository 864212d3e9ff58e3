/*
 * Syncing after unlocking, with power loss (PROTOCOL 4, 5).
 *
 * A line is appended under the mutex, the mutex is freed, the file is synced, and only then is the line
 * acknowledged. A sync makes durable everything that was appended before it began. Others may rely on a line that is
 * not durable yet, but are acknowledged only after their own sync, which covers it. A power cut keeps what was
 * synced, and of the rest any lines at all: pages reach the disk in any order. Each line says how far its writer knew
 * the log to be durable. After the cut the log counts up to the first line that is missing, and a whole line behind
 * it may not have called that one durable, for that would be corruption. Nothing acknowledged is lost.
 *
 * MUTANT 1: a repetition ("you have it already") is acknowledged without a sync.
 * MUTANT 2: a line calls durable what its writer only saw in the log.
 */
#ifndef LINES
#define LINES 4
#endif

byte log = 0;             /* lines in the page cache */
byte durable = 0;         /* lines on the disk for certain */
byte known = 0;           /* what some process was told is durable; shared, as a mark beside the log */
byte said[LINES + 1];     /* per line: how far its writer knew the log to be durable */
byte acked = 0;           /* the highest line that somebody was told about */
bool locked = false;
bool off = false;

#define raise(variable, to) if :: variable < to -> variable = to :: else fi

proctype Writer() {
  byte mine, upTo;
  do
  :: off -> break
  :: !off && log < LINES ->
    atomic { (!locked || off) -> locked = true };
    if
    :: off -> break
    :: !off && log < LINES ->
      d_step {
        log++; mine = log;
#if MUTANT == 2
        said[mine] = mine - 1;
#else
        said[mine] = known;
#endif
        locked = false
      }
    :: else -> mine = 0; locked = false
    fi;
    if
    :: mine != 0 ->
      upTo = log;                               /* the sync begins: at least our own line is in the file */
      if
      :: atomic { !off -> raise(durable, upTo) }
      :: off -> break
      fi;
      atomic { !off -> raise(known, upTo) };
      atomic { !off -> raise(acked, mine) }
    :: else
    fi
  :: !off && log == LINES -> break
  od
}

/* Asks for what it finds done already, and relies on the newest line it sees. */
proctype Repeater() {
  byte seen, n;
  do
  :: off -> break
  :: !off && n < 2 ->
    n++;
    seen = log;
#if MUTANT != 1
    atomic { !off -> raise(durable, seen) };
#endif
    atomic { !off -> raise(acked, seen) }
  :: n == 2 -> break
  od
}

proctype Power() {
  byte line, counted;
  bool torn;
  atomic {
    off = true;
    line = 1;
    do
    :: line > log -> break
    :: line <= log && (line <= durable || !torn) -> counted = line; line++     /* it reached the disk */
    :: line <= log && line > durable -> torn = true; line++                    /* it did not */
    :: line <= log && torn ->                                                  /* it did, behind one that did not */
      assert(said[line] <= counted);
      line++
    od;
    assert(acked <= counted)
  }
}

init { atomic { run Writer(); run Writer(); run Repeater(); run Power() } }
