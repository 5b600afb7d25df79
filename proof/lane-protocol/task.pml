/*
 * A task of three subtasks: 1 and 2 depend on nothing, 3 on both. Their peers end in any order on two workers,
 * which race with a stop, with settling and with kills. lane.pml and child.pml cover the lanes themselves.
 * The README.md next to this file maps the steps to source files.
 *
 * One transaction of the store is one d_step here.
 */

#define PENDING 0
#define DISPATCHED 1
#define DONE 2
#define FAILED 3
#define SKIPPED 4
byte node[4];
byte tries[4];

#define EXECUTING 1
#define AGGREGATING 2
#define ENDED 3
byte taskIs;
bit unsettled;
bit item;                       /* the coordinator's turn for the answer waits or is being taken */

/* ---- Peers, by subtask and try: 0 and 1 of subtask 1, which is tried twice, 2 of 2, and 3 of 3 ------------ */

#define NONE 0
#define LIVE 1
#define OVER 2
byte peer[4];
bit held[4];                    /* a worker has claimed it: lane.pml proves that it is one */
#define NODE_OF(p) (p < 2 -> 1 : p)
#define TRY_OF(p) (p == 1 -> 2 : 1)
#define PEER_OF(n) (n == 1 -> tries[n] - 1 : n)
#ifdef DISPATCH_APART
bit owed[4];
#endif

/* ---- Outside the store, and what is checked ------------------------------------------------------------------- */

bit calm;                       /* nothing goes wrong from here on */
bit stopped;
byte turns, answers;
bit early, again, afterEnd;

#define IDLE 0
#define WORKS 1
#define REPLIES 2               /* it writes the answer */
#define HALFWAY 3               /* only in broken variants: between the two halves of a step */
byte at[2];
byte on[2];
hidden byte i, d;
#ifdef REPLY_UNLOCKED
bit saw[2];
#endif

#define SATISFIED(n) (node[n] == DONE)
#define OPEN(n) (node[n] == PENDING || node[n] == DISPATCHED)
#define current(p) (node[NODE_OF(p)] == DISPATCHED && tries[NODE_OF(p)] == TRY_OF(p))
#ifdef ONE_PARENT
#define ready(n) (node[n] == PENDING && (n < 3 || SATISFIED(1) || SATISFIED(2)))
#else
#define ready(n) (node[n] == PENDING && (n < 3 || (SATISFIED(1) && SATISFIED(2))))
#endif

/* The row of the subtask and its peer are one commit; no try is dispatched twice, and none too early. */
inline dispatch(n) {
  early = (n == 3 && !(SATISFIED(1) && SATISFIED(2)));
  assert(!early);
  afterEnd = (taskIs != EXECUTING);
  assert(!afterEnd);
  tries[n]++; node[n] = DISPATCHED;
  again = (peer[PEER_OF(n)] != NONE);
  assert(!again);
#ifdef DISPATCH_APART
  owed[PEER_OF(n)] = 1
#else
  peer[PEER_OF(n)] = LIVE
#endif
}

/* moveOn: one dispatch in each step, the others are left to settling. */
inline go_on() {
  i = 1; d = 0;
  do
  :: i <= 3 && ready(i) && d == 0 -> d = 1; dispatch(i); i++
  :: i <= 3 && ready(i) && d == 1 -> unsettled = 1; i++
  :: i <= 3 && !ready(i) -> i++
  :: i > 3 -> break
  od;
  i = 0; d = 0
}

inline end_all() {
  i = 1;
  do
  :: i <= 3 ->
#ifdef STOP_MISSES
     if
     :: node[i] == DISPATCHED -> node[i] = FAILED
     :: else
     fi;
#else
     node[i] = (node[i] == DISPATCHED -> FAILED : (node[i] == PENDING -> SKIPPED : node[i]));
#endif
     i++
  :: i > 3 -> break
  od;
  i = 0; unsettled = 1
}

inline aggregate() {
  turns++; assert(turns == 1);                                 /* one turn for the answer */
  taskIs = AGGREGATING; item = 1
}

/* recordReply */
inline reply(p, isDone) {
  if
#ifdef LATE_COUNTS
  :: true ->
#else
  :: taskIs == EXECUTING && current(p) ->
#endif
     afterEnd = (taskIs != EXECUTING);
     assert(!afterEnd);
     if
     :: isDone ->
        node[NODE_OF(p)] = DONE;
        if
        :: SATISFIED(1) && SATISFIED(2) && SATISFIED(3) -> aggregate()
        :: else -> go_on()
        fi
     :: !isDone && p == 0 -> dispatch(1)
     :: !isDone && p != 0 -> node[NODE_OF(p)] = FAILED; end_all(); aggregate()
     fi
#ifndef LATE_COUNTS
  :: else                                                       /* archived */
#endif
  fi
}

inline rest(s) {
  held[on[s]] = (at[s] == WORKS || at[s] == HALFWAY -> 0 : held[on[s]]);
  at[s] = IDLE; on[s] = 0
}

#define free(p) (peer[p] == LIVE && !held[p])
#define works(s) (at[s] == WORKS && peer[on[s]] == LIVE)

active [2] proctype Worker() {
  byte s = _pid;
end:
  do
  :: d_step { at[s] == IDLE && free(0) -> held[0] = 1; on[s] = 0; at[s] = WORKS }
  :: d_step { at[s] == IDLE && free(1) -> held[1] = 1; on[s] = 1; at[s] = WORKS }
  :: d_step { at[s] == IDLE && free(2) -> held[2] = 1; on[s] = 2; at[s] = WORKS }
  :: d_step { at[s] == IDLE && free(3) -> held[3] = 1; on[s] = 3; at[s] = WORKS }
  /* finishChild: the end of the peer and its reply are one commit. */
#ifdef REPLY_UNLOCKED
  :: d_step { works(s) && (on[s] == 0 || on[s] == 2) -> saw[s] = SATISFIED((on[s] == 0 -> 2 : 1)); at[s] = HALFWAY }
  :: d_step { at[s] == HALFWAY && peer[on[s]] == LIVE ->
       peer[on[s]] = OVER;
       if
       :: taskIs == EXECUTING && current(on[s]) ->
          node[NODE_OF(on[s])] = DONE;
          if
          :: saw[s] -> go_on()
          :: else
          fi
       :: else
       fi;
       saw[s] = 0; rest(s) }
  :: d_step { works(s) && on[s] == 3 -> peer[on[s]] = OVER; reply(on[s], true); rest(s) }
#else
  :: d_step { works(s) -> peer[on[s]] = OVER; reply(on[s], true); rest(s) }
#endif
  :: d_step { works(s) && !calm -> peer[on[s]] = OVER; reply(on[s], false); rest(s) }
  :: d_step { (at[s] == WORKS || at[s] == HALFWAY) && peer[on[s]] != LIVE -> rest(s) }      /* it was fenced */
  /* The coordinator's turn. */
  :: d_step { at[s] == IDLE && item == 1 && taskIs == AGGREGATING && at[1 - s] != REPLIES -> at[s] = REPLIES }
  :: d_step { at[s] == REPLIES && taskIs == AGGREGATING ->
       answers++; assert(answers == 1 && !stopped);               /* one answer, and none after a stop */
       item = 0; taskIs = ENDED; rest(s) }
  :: d_step { at[s] == REPLIES && taskIs != AGGREGATING -> rest(s) }
  od
}

/* delegate, and a stop by a person: stopTask */
active proctype People() {
  d_step { taskIs = EXECUTING; go_on() };
end:
  do
  :: d_step { !stopped && (taskIs == EXECUTING || taskIs == AGGREGATING) && !calm ->
       end_all(); stopped = 1; item = 0; taskIs = ENDED }
  od
}

#define left(p) (peer[p] == LIVE && !current(p))
#define HAS_LIVE (peer[0] == LIVE || peer[1] == LIVE || peer[2] == LIVE || peer[3] == LIVE)
#define settled (taskIs == ENDED && !unsettled && !OPEN(1) && !OPEN(2) && !OPEN(3) && !HAS_LIVE && answers == !stopped)

/* settleTask, which the sweep calls */
active proctype Settler() {
end:
  do
#ifndef WITHOUT_SETTLING
  :: d_step { unsettled ->
       unsettled = 0;
       peer[0] = (left(0) -> OVER : peer[0]); peer[1] = (left(1) -> OVER : peer[1]);
       peer[2] = (left(2) -> OVER : peer[2]); peer[3] = (left(3) -> OVER : peer[3]);
       if
       :: taskIs == EXECUTING -> go_on()
       :: else
       fi }
#endif
#ifdef DISPATCH_APART
  :: d_step { owed[0] -> owed[0] = 0; peer[0] = LIVE }
  :: d_step { owed[1] -> owed[1] = 0; peer[1] = LIVE }
  :: d_step { owed[2] -> owed[2] = 0; peer[2] = LIVE }
  :: d_step { owed[3] -> owed[3] = 0; peer[3] = LIVE }
  :: d_step { !calm && (owed[0] || owed[1] || owed[2] || owed[3]) -> owed[0] = 0; owed[1] = 0; owed[2] = 0; owed[3] = 0 }
#endif
  :: timeout -> assert(settled); break            /* nothing moves any more: nothing may be left */
  od
}

/* Processes are killed at any point; what they hold is claimed again. */
active proctype Faults() {
end:
  do
  :: !calm -> calm = 1
  :: d_step { !calm && at[0] != IDLE -> rest(0) }
  :: d_step { !calm && at[1] != IDLE -> rest(1) }
  od
}

ltl settles { (<> calm) -> (<> [] settled) }
