/*
 * Sub-agents: the lanes of a conversation and of the children below it, as far as they affect each other.
 * lane.pml covers what happens within one lane: here a lane has a run or none, waiting items, and a holder.
 * The README.md next to this file maps the steps to source files and says what is left out.
 *
 * One transaction of the store is one d_step or atomic here. Between two of them anything may happen until
 * the world is calm: processes are killed, runs fail or hang, holders sleep past their lease.
 */

#ifndef CHILDREN
#define CHILDREN 2              /* 1, 2 or 3; lane 0 is the conversation's, and lane c the child's c */
#endif
#ifndef MESSAGES
#define MESSAGES 1              /* messages that people write to the conversation */
#endif
#ifndef SLOTS
#define SLOTS 2                 /* 1 or 2 */
#endif
#ifndef NODES
#define NODES 3                 /* how many live children the tree may have */
#endif
#ifdef SIBLINGS
#define PARENT(c) 0             /* all are the conversation's children */
#else
#define PARENT(c) (c == 2)      /* the second is a child of the first */
#endif
#define LANES (CHILDREN + 1)
#define NOBODY 0
#define DEAD 9                  /* a process that is gone; its lease keeps running */

/* ---- The store ----------------------------------------------------------------------------------- */

byte items[LANES];              /* items waiting in the lane */
bit openRun[LANES];                 /* it has an unfinished run, */
bit cancel[LANES];              /* which was asked to stop, */
bit parked[LANES];              /* or waits for its children's calls, without a holder */
byte holder[LANES];             /* the slot that may write, plus one: lane.pml proves the epoch */
bit lease[LANES];

#define NONE 0
#define STARTED 1
#define SETTLED 2
byte call[LANES];               /* the call that spawns child c, in its parent's run */
bit ofRun[LANES];               /* that run is the lane's open one */
bit awaited[LANES];             /* mode `wait` */

#define QUEUED 1
#define RUNNING 2
#define DONE 3
byte state[LANES];
#define ASKED 1                 /* by the person, the parent's tool, or its own time limit */
#define CASCADE 2               /* by a stop or an end above: nothing there awaits it any more */
byte stopping[LANES];
#define BY_TOOL 1
#define BY_LANE 2
#define TO_NOBODY 3
byte told[LANES];

/* ---- Outside the store ----------------------------------------------------------------------------- */

bit calm;                       /* nothing goes wrong from here on */
byte accepted;
bit steered;

#define IDLE 0
#define RECOVERS 1              /* has claimed a run that was begun before */
#define WORKS 2                 /* the model is thinking */
#define SPAWNS 3                /* its call is marked as started */
#define SPAWNED 4               /* the child is in the store, or was refused */
#define HANGS 5                 /* no longer responds, and keeps its lease */
#define HALFWAY 6               /* only in broken variants: between the two halves of a step */
byte at[SLOTS];
byte on[SLOTS];                 /* the lane it works on */
byte kid[SLOTS];                /* the child of its call */

/* ---- What is checked -------------------------------------------------------------------------------- */

byte heard[LANES];              /* how often something above was notified */
bit bereft[LANES];              /* the run that spawned it has ended, and not naturally */

hidden byte i, k;               /* only inside a d_step */
#ifdef STOP_UNLOCKED
bit below[LANES];
bit looked;
#else
hidden byte below[LANES];        /* lanes that a stop has found */
#endif

#define live(c) (state[c] == QUEUED || state[c] == RUNNING)
#define child_of(c, l) (PARENT(c) == l)
#define may_write(s) (holder[on[s]] == s + 1)
#define claimable(l) (!lease[l] && (openRun[l] || items[l] > 0))
#define works_on(s, l) (at[s] != IDLE && on[s] == l && holder[l] == s + 1)
#define open_call(c, l) (child_of(c, l) && ofRun[c] && call[c] == STARTED)
#if SLOTS == 1
#define HELD(l) works_on(0, l)
#else
#define HELD(l) (works_on(0, l) || works_on(1, l))
#endif
#if CHILDREN == 1
#define ANY(is) is(1)
#define NODES_NOW live(1)
#define ANY_OF(is, l) is(1, l)
#define ALL(is) is(1)
#elif CHILDREN == 2
#define ANY(is) (is(1) || is(2))
#define NODES_NOW (live(1) + live(2))
#define ANY_OF(is, l) (is(1, l) || is(2, l))
#define ALL(is) (is(1) && is(2))
#else
#define ANY(is) (is(1) || is(2) || is(3))
#define NODES_NOW (live(1) + live(2) + live(3))
#define ANY_OF(is, l) (is(1, l) || is(2, l) || is(3, l))
#define ALL(is) (is(1) && is(2) && is(3))
#endif
#define live_of(c, l) (child_of(c, l) && live(c))

/* A child that nothing above awaits, and that was not asked to stop. */
#define orphaned(c) (live(c) && !stopping[c] && (bereft[c] || state[PARENT(c)] == DONE))
#define free(l) (items[l] == 0 && !openRun[l] && !lease[l])
#define over(c) (state[c] == NONE || (state[c] == DONE && told[c] != NONE))
#define settled (accepted == MESSAGES && free(0) && ALL(free) && ALL(over))

/* ---- Parts of transactions ---------------------------------------------------------------------------- */

inline rest(s) {
  at[s] = IDLE; on[s] = 0; kid[s] = 0
}

inline unpark(l) {
  if
  :: parked[l] -> parked[l] = 0; lease[l] = 0
  :: else
  fi
}

inline announce(c) {
  told[c] = BY_LANE; heard[c]++; items[PARENT(c)]++
}

inline settle_call(c) {
  told[c] = BY_TOOL; heard[c]++; call[c] = SETTLED;
  if
  :: !ANY_OF(open_call, PARENT(c)) -> unpark(PARENT(c))
  :: else
  fi
}

#define waited_for(c) (awaited[c] && openRun[PARENT(c)] && ofRun[c] && call[c] == STARTED && !cancel[PARENT(c)])

/* tellParent: notifies the waiting call, or adds an item to its parent's lane, or neither. */
inline tell(c) {
  if
  :: stopping[c] == CASCADE -> told[c] = TO_NOBODY
  :: stopping[c] != CASCADE && waited_for(c) -> settle_call(c)
  :: else -> announce(c)
  fi
}

inline record(c) {
  assert(state[c] == QUEUED || state[c] == RUNNING);            /* ends once */
  state[c] = DONE
}

/* finishChild */
inline finish(c) {
  record(c); tell(c)
}

/* stopOne: a queued or idle child ends immediately, a run is asked to stop. */
inline stop_one(c, why) {
  stopping[c] = (stopping[c] == CASCADE -> CASCADE : why);
  items[c] = 0;
  if
  :: openRun[c] -> cancel[c] = 1; unpark(c)
  :: else -> finish(c)
  fi
}

/* The lanes that stopTree finds below lane l; `own`: only those its open run has spawned. Parents come first. */
inline find_below(l, own) {
  k = 1;
  do
  :: k <= CHILDREN ->
     below[k] = (live(k) && ((PARENT(k) == l && (!own || ofRun[k])) || (PARENT(k) != l && below[PARENT(k)])));
     k++
  :: else -> break
  od;
  k = 0
}

inline stop_found() {
  k = CHILDREN;
  do
  :: k > 0 ->
     if
     :: below[k] && live(k) -> stop_one(k, CASCADE)
     :: else
     fi;
     below[k] = 0;
     k--
  :: else -> break
  od;
  k = 0
}

inline stop_tree(l, own) {
  find_below(l, own); stop_found()
}

/* stopBranch */
inline stop_branch(c) {
  stop_tree(c, 0); stop_one(c, ASKED)
}

/* endRunOfChild: the child is done when nothing of it continues. */
inline end_child(l) {
  if
  :: l > 0 && stopping[l] -> items[l] = 0; finish(l)
#ifdef FINISH_BLIND
  :: l > 0 && !stopping[l] && !ANY_OF(live_of, l) -> finish(l)
#elif defined(CHILDREN_FORGOTTEN)
  :: l > 0 && !stopping[l] && items[l] == 0 -> finish(l)
#else
  :: l > 0 && !stopping[l] && items[l] == 0 && !ANY_OF(live_of, l) -> finish(l)
#endif
  :: else
  fi
}

/* closeRun: a run that ends unnaturally stops the children it has spawned. */
inline close_run(l, natural) {
  i = 1;
  do
  :: i <= CHILDREN ->
     if
     :: PARENT(i) == l && ofRun[i] -> bereft[i] = !natural
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0;
  openRun[l] = 0; cancel[l] = 0; parked[l] = 0; holder[l] = NOBODY; lease[l] = 0;
#ifndef DEATH_UNHEARD
  if
  :: !natural -> stop_tree(l, 1)
  :: else
  fi;
#endif
  i = 1;
  do
  :: i <= CHILDREN ->
     if
     :: PARENT(i) == l && ofRun[i] -> ofRun[i] = 0; call[i] = SETTLED
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

inline end_run(l, natural) {
  close_run(l, natural); end_child(l)
}

/* claimLane */
inline claim(s, l) {
  on[s] = l; holder[l] = s + 1; lease[l] = 1;
  if
  :: openRun[l] ->
     if
     :: parked[l] ->                              /* the wait has expired */
        parked[l] = 0; i = 1;
        do
        :: i <= CHILDREN -> call[i] = (open_call(i, l) -> SETTLED : call[i]); i++
        :: else -> break
        od;
        i = 0
     :: else
     fi;
     at[s] = RECOVERS
  :: else ->
     openRun[l] = 1; items[l]--;
     state[l] = (state[l] == QUEUED -> RUNNING : state[l]);
     at[s] = WORKS
  fi
}

/* parkRun: its children may have ended, or it was asked to stop, before this step. */
inline park(s) {
  i = on[s];
#ifdef PARK_UNSEEN
  parked[i] = !cancel[i];
#else
  parked[i] = (!cancel[i] && ANY_OF(open_call, i));
#endif
  lease[i] = parked[i]; holder[i] = NOBODY; i = 0;
  rest(s)
}

/* ---- A slot -------------------------------------------------------------------------------------------- */

#define may_call(c) (PARENT(c) == on[s] && call[c] == NONE)
/* A call that must still be made before its run may wait for the others. */
#define unmade(c, l) (open_call(c, l) && (state[c] == NONE || !awaited[c]))
#define repeats(c) (unmade(c, on[s]) || (open_call(c, on[s]) && !ANY_OF(unmade, on[s])))

/* The other calls of its turn. */
inline next_call(s) {
  kid[s] = 0; at[s] = (ANY_OF(open_call, on[s]) -> RECOVERS : WORKS)
}

active [SLOTS] proctype Slot() {
  byte s = _pid;
#ifdef COUNT_UNLOCKED
  bit seen;
#endif
#ifdef PARENT_UNLOCKED
  byte how;
#endif
end:
  do
  :: d_step { at[s] == IDLE && claimable(0) -> claim(s, 0) }
  :: d_step { at[s] == IDLE && claimable(1) -> claim(s, 1) }
#if CHILDREN > 1
  :: d_step { at[s] == IDLE && claimable(2) -> claim(s, 2) }
#endif
#if CHILDREN > 2
  :: d_step { at[s] == IDLE && claimable(3) -> claim(s, 3) }
#endif
  :: d_step { at[s] != IDLE && at[s] != HALFWAY && !may_write(s) -> rest(s) }

  /* recoverRun: an open call is made again, under the same id, or reported as unknown. */
  :: d_step { at[s] == RECOVERS && may_write(s) && cancel[on[s]] -> end_run(on[s], 0); rest(s) }
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && !ANY_OF(open_call, on[s]) -> at[s] = WORKS }
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && repeats(1) -> kid[s] = 1; at[s] = SPAWNS }
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && open_call(1, on[s]) -> call[1] = SETTLED }
#if CHILDREN > 1
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && repeats(2) -> kid[s] = 2; at[s] = SPAWNS }
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && open_call(2, on[s]) -> call[2] = SETTLED }
#endif
#if CHILDREN > 2
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && repeats(3) -> kid[s] = 3; at[s] = SPAWNS }
  :: d_step { at[s] == RECOVERS && may_write(s) && !cancel[on[s]] && open_call(3, on[s]) -> call[3] = SETTLED }
#endif

  /* takeSteers: including a child's announcements. */
  :: d_step { at[s] == WORKS && may_write(s) && items[on[s]] > 0 -> items[on[s]]-- }

  /* The model calls sessions_spawn; one turn may have several calls. */
  :: atomic { (at[s] == WORKS || (at[s] == SPAWNED && awaited[kid[s]])) && may_write(s) && ANY(may_call) ->
       if
       :: may_call(1) -> kid[s] = 1
#if CHILDREN > 1
       :: may_call(2) -> kid[s] = 2
#endif
#if CHILDREN > 2
       :: may_call(3) -> kid[s] = 3
#endif
       fi;
       if
       :: awaited[kid[s]] = 0
       :: awaited[kid[s]] = 1
       fi;
       call[kid[s]] = STARTED; ofRun[kid[s]] = 1; at[s] = SPAWNS }

  /* spawnChild: limits and child are one step. The child's id is that of the call, so a repeat finds it. */
#ifdef SPAWN_ANEW
  :: d_step { at[s] == SPAWNS && may_write(s) ->
       assert(state[kid[s]] == NONE && call[kid[s]] == STARTED);  /* a call spawns once */
       state[kid[s]] = QUEUED; items[kid[s]] = 1; at[s] = SPAWNED }
#elif defined(COUNT_UNLOCKED)
  :: d_step { at[s] == SPAWNS && may_write(s) && state[kid[s]] == NONE ->
       seen = (NODES_NOW < NODES); at[s] = HALFWAY }
  :: d_step { at[s] == HALFWAY && !may_write(s) -> seen = 0; rest(s) }
  :: d_step { at[s] == HALFWAY && may_write(s) && !seen -> call[kid[s]] = SETTLED; next_call(s) }
  :: d_step { at[s] == HALFWAY && may_write(s) && seen -> seen = 0;
       state[kid[s]] = QUEUED; items[kid[s]] = 1; at[s] = SPAWNED;
       assert(NODES_NOW <= NODES) }
#else
  :: d_step { at[s] == SPAWNS && may_write(s) && state[kid[s]] == NONE && NODES_NOW < NODES ->
       state[kid[s]] = QUEUED; items[kid[s]] = 1; at[s] = SPAWNED;
       assert(NODES_NOW <= NODES) }                               /* the tree stays within its limit */
  :: d_step { at[s] == SPAWNS && may_write(s) && state[kid[s]] == NONE ->
       call[kid[s]] = SETTLED; next_call(s) }                     /* refused */
#endif
  :: d_step { at[s] == SPAWNS && may_write(s) && state[kid[s]] != NONE -> at[s] = SPAWNED }
  :: d_step { at[s] == SPAWNED && may_write(s) && !awaited[kid[s]] ->
       call[kid[s]] = SETTLED; next_call(s) }
  :: d_step { at[s] == SPAWNED && may_write(s) && awaited[kid[s]] && ANY_OF(unmade, on[s]) -> next_call(s) }
#ifndef WAIT_HOLDS_SLOT
  :: d_step { at[s] == SPAWNED && may_write(s) && awaited[kid[s]] && !ANY_OF(unmade, on[s]) -> park(s) }
#else
  :: d_step { at[s] == SPAWNED && may_write(s) && awaited[kid[s]] && call[kid[s]] == SETTLED -> at[s] = WORKS }
#endif

  /* commitAnswer and endRun */
#if defined(FINISH_APART)
  :: d_step { at[s] == WORKS && may_write(s) && !cancel[on[s]] ->
       close_run(on[s], 1);
       if
       :: on[s] > 0 && !stopping[on[s]] && items[on[s]] == 0 && !ANY_OF(live_of, on[s]) -> record(on[s]); at[s] = HALFWAY
       :: else -> end_child(on[s]); rest(s)
       fi }
  :: d_step { at[s] == HALFWAY -> tell(on[s]); rest(s) }
#elif defined(PARENT_UNLOCKED)
  /* What was read about the parent (its call, whether it is parked) has changed by the time it counts. */
  :: d_step { at[s] == WORKS && may_write(s) && !cancel[on[s]] && on[s] > 0 && !stopping[on[s]] && items[on[s]] == 0 && !ANY_OF(live_of, on[s]) ->
       how = (waited_for(on[s]) -> 1 + parked[PARENT(on[s])] : 0); at[s] = HALFWAY }
  :: d_step { at[s] == HALFWAY && (!may_write(s) || cancel[on[s]] || items[on[s]] > 0 || stopping[on[s]]) -> how = 0; rest(s) }
  :: d_step { at[s] == HALFWAY && may_write(s) && !cancel[on[s]] && items[on[s]] == 0 && !stopping[on[s]] ->
       close_run(on[s], 1); record(on[s]);
       if
       :: how == 0 -> announce(on[s])
       :: how > 0 && call[on[s]] == STARTED ->
          told[on[s]] = BY_TOOL; heard[on[s]]++; call[on[s]] = SETTLED;
          if
          :: how == 2 -> unpark(PARENT(on[s]))
          :: else
          fi
       :: else -> told[on[s]] = BY_TOOL           /* the call already has a result */
       fi;
       how = 0; rest(s) }
  :: d_step { at[s] == WORKS && may_write(s) && !cancel[on[s]] && (on[s] == 0 || items[on[s]] > 0 || ANY_OF(live_of, on[s])) ->
       end_run(on[s], 1); rest(s) }
#else
  :: d_step { at[s] == WORKS && may_write(s) && !cancel[on[s]] -> end_run(on[s], 1); rest(s) }
#endif
  :: d_step { at[s] == WORKS && may_write(s) && (cancel[on[s]] || !calm) -> end_run(on[s], 0); rest(s) }
  :: d_step { at[s] == WORKS && may_write(s) && on[s] > 0 && !calm -> at[s] = HANGS }
  od
}

/* ---- People, time and the sweep ---------------------------------------------------------------------------- */

#define may_stop (!calm || accepted < MESSAGES)
#define unmarked(c) (live(c) && !stopping[c])

active proctype People() {
end:
  do
  :: d_step { accepted < MESSAGES -> accepted++; items[0]++ }
  :: d_step { accepted < MESSAGES && openRun[0] && !cancel[0] -> accepted++; items[0]++; cancel[0] = 1; unpark(0) }
  /* steerChild */
  :: d_step { !steered && unmarked(1) -> steered = 1; items[1]++ }
  /* /stop: everything below it is asked to stop in the same step. */
#ifdef STOP_UNLOCKED
  :: d_step { may_stop && !looked -> find_below(0, 0); looked = 1 }
  :: d_step { looked -> looked = 0; stop_found(); items[0] = 0;
       if
       :: openRun[0] -> cancel[0] = 1; unpark(0)
       :: else
       fi;
       assert(!ANY(unmarked)) }                                   /* nothing below continues */
#else
  :: d_step { may_stop && (items[0] > 0 || (openRun[0] && !cancel[0]) || ANY(unmarked)) ->
       items[0] = 0; stop_tree(0, 0);
       if
       :: openRun[0] -> cancel[0] = 1; unpark(0)
       :: else
       fi;
       assert(!ANY(unmarked)) }
#endif
  od
}

inline fence(c) {
  if
  :: openRun[c] -> end_run(c, 0)
  :: else -> items[c] = 0; finish(c)
  fi
}

#if SLOTS == 1
#define hung(c) (at[0] == HANGS && on[0] == c)
#else
#define hung(c) ((at[0] == HANGS && on[0] == c) || (at[1] == HANGS && on[1] == c))
#endif
/* In the end only hanging children run out of time, so that this can't free a stuck one. */
#define overdue(c) (unmarked(c) && (!calm || hung(c)))
#define late(c) (live(c) && stopping[c])
#define at_rest(c) (live(c) && !stopping[c] && !openRun[c] && items[c] == 0 && !ANY_OF(live_of, c))
#define lease_may_end(l) (lease[l] && !parked[l] && (!calm || !HELD(l)))

active proctype Clock() {
end:
  do
  :: d_step { lease_may_end(0) -> lease[0] = 0 }
  :: d_step { lease_may_end(1) -> lease[1] = 0 }
  :: d_step { parked[0] && lease[0] && !calm -> lease[0] = 0 }   /* a wait expires */
  :: d_step { overdue(1) -> stop_branch(1) }
  :: d_step { at_rest(1) -> finish(1) }
#ifndef WITHOUT_FENCE
  :: d_step { late(1) -> fence(1) }
#endif
#if CHILDREN > 1
  :: d_step { lease_may_end(2) -> lease[2] = 0 }
  :: d_step { parked[1] && lease[1] && !calm -> lease[1] = 0 }
  :: d_step { overdue(2) -> stop_branch(2) }
  :: d_step { at_rest(2) -> finish(2) }
#ifndef WITHOUT_FENCE
  :: d_step { late(2) -> fence(2) }
#endif
#endif
#if CHILDREN > 2
  :: d_step { lease_may_end(3) -> lease[3] = 0 }
  :: d_step { parked[2] && lease[2] && !calm -> lease[2] = 0 }
  :: d_step { overdue(3) -> stop_branch(3) }
  :: d_step { at_rest(3) -> finish(3) }
#ifndef WITHOUT_FENCE
  :: d_step { late(3) -> fence(3) }
#endif
#endif
  :: timeout -> assert(settled); break            /* nothing moves any more: nothing may be left */
  od
}

/* The parent is notified once, or not at all if the stop came from above. */
#define misinformed(c) (told[c] != NONE && (heard[c] != (told[c] != TO_NOBODY) || (told[c] == TO_NOBODY && stopping[c] != CASCADE)))
/* Nothing waits in the lane of a child that has ended. */
#define haunted(c) (state[c] == DONE && (openRun[c] || items[c] > 0))

active proctype Watch() {
end:
  do
  :: ANY(orphaned) -> assert(!ANY(orphaned))
  :: ANY(misinformed) -> assert(!ANY(misinformed))
  :: ANY(haunted) -> assert(!ANY(haunted))
  od
}

active proctype Faults() {
end:
  do
  :: !calm -> calm = 1
  :: d_step { !calm && at[0] != IDLE -> holder[on[0]] = (may_write(0) -> DEAD : holder[on[0]]); rest(0) }
#if SLOTS > 1
  :: d_step { !calm && at[1] != IDLE -> holder[on[1]] = (may_write(1) -> DEAD : holder[on[1]]); rest(1) }
#endif
  od
}

ltl settles { (<> calm) -> (<> [] settled) }
