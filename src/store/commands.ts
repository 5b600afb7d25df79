/** Every step of the protocol, by name. The SQLite writer thread runs them from this list. */
import { approveOnConsole, revokeOnConsole } from './access/operate-access.ts';
import { dismissNotice, endNotice, raiseNotice } from './alerts/note-trouble.ts';
import type { StoreCommand } from './base/command.ts';
import { claimDelivery, settleDelivery } from './delivery/deliver.ts';
import { dropPart, retryPart } from './delivery/operate.ts';
import { postParts } from './delivery/post-part.ts';
import { recordPreview } from './delivery/record-preview.ts';
import { tellOwner } from './delivery/tell-owner.ts';
import { acceptBatch } from './intake/accept-batch.ts';
import { storeFetched } from './intake/fetching.ts';
import { cancelItem, cancelItems } from './items/cancel-item.ts';
import { editItem } from './items/edit-item.ts';
import { promoteItem } from './items/promote-item.ts';
import { tellWaiting } from './items/receipts.ts';
import { claimLane } from './lanes/claim-lane.ts';
import { commitAnswer, endRun } from './lanes/commit-answer.ts';
import {
  commitToolTurn,
  endToolTurn,
  markToolStarted,
  saveImage,
  sayNotice,
  storeToolResults,
} from './lanes/commit-turn.ts';
import { handOver, letGoOf, releaseLane, renewLeases } from './lanes/leases.ts';
import { markUnsendable } from './lanes/mark-unsendable.ts';
import { parkRun, settleParkedCall } from './lanes/park-run.ts';
import { recoverRun } from './lanes/recover-run.ts';
import { takeSteers } from './lanes/steer.ts';
import { closeBundles } from './lanes/sweep.ts';
import { claimAccount, releaseAccount, rememberCommands } from './processes/accounts.ts';
import { beginBoot, endBoots } from './processes/boots.ts';
import { lockOut } from './sign-ins/lockouts.ts';
import { endSignIns, openSignIn, touchSignIn } from './sign-ins/sign-ins.ts';

// `never` as input: the list forgets what each takes; Store.write knows it.
export const storeCommands: readonly StoreCommand<never, unknown>[] = [
  acceptBatch,
  approveOnConsole,
  beginBoot,
  cancelItem,
  cancelItems,
  claimAccount,
  claimDelivery,
  claimLane,
  closeBundles,
  commitAnswer,
  commitToolTurn,
  dismissNotice,
  dropPart,
  editItem,
  endBoots,
  endNotice,
  endRun,
  endSignIns,
  endToolTurn,
  handOver,
  letGoOf,
  lockOut,
  markToolStarted,
  markUnsendable,
  openSignIn,
  parkRun,
  postParts,
  promoteItem,
  raiseNotice,
  recordPreview,
  recoverRun,
  releaseAccount,
  releaseLane,
  rememberCommands,
  renewLeases,
  retryPart,
  revokeOnConsole,
  saveImage,
  sayNotice,
  settleDelivery,
  settleParkedCall,
  storeFetched,
  storeToolResults,
  takeSteers,
  tellOwner,
  tellWaiting,
  touchSignIn,
];
