/*
 * Syncing after unlocking, with power loss (PROTOCOL 4, 5).
 *
 * A line is appended under the mutex, the mutex is freed, the file is synced, and only then is the line
 * acknowledged. A sync makes durable everything that was appended before it began. Other writers may rely on a
 * line that is not durable yet, but are acknowledged only after their own sync, which covers it. A power cut
 * keeps what was synced, and of the rest any prefix. Nothing acknowledged is lost, and nothing acknowledged
 * rests on something lost.
 *
 * MUTANT: a repetition ("you have it already") is acknowledged without a sync.
 */
#define LINES 4

byte log = 0;          /* lines in the page cache */
byte durable = 0;      /* lines on the disk for certain */
byte acked = 0;        /* the highest line that somebody was told about */
bool locked = false;
bool off = false;

proctype Writer() {
  byte mine, upTo;
  do
  :: off -> break
  :: !off && log < LINES ->
    atomic { (!locked || off) -> locked = true };
    if
    :: off -> break
    :: log < LINES -> log++; mine = log; locked = false
    :: else -> mine = 0; locked = false
    fi;
    if
    :: mine != 0 ->
      upTo = log;                               /* the sync begins: at least our own line is in the file */
      if
      :: atomic { !off -> if :: durable < upTo -> durable = upTo :: else fi }
      :: off -> break
      fi;
      atomic { !off -> if :: acked < mine -> acked = mine :: else fi }
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
#ifndef MUTANT
    atomic { !off -> if :: durable < seen -> durable = seen :: else fi };
#endif
    atomic { !off -> if :: acked < seen -> acked = seen :: else fi }
  :: n == 2 -> break
  od
}

proctype Power() {
  byte kept;
  atomic {
    off = true;
    kept = durable;
    do
    :: kept < log -> kept++                     /* of the unsynced, some prefix may have reached the disk */
    :: break
    od;
    assert(acked <= kept)
  }
}

init { atomic { run Writer(); run Writer(); run Repeater(); run Power() } }
