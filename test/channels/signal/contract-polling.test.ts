import { channelContract } from '../channel-contract.ts';
import { aSignalHarness } from './signal-harness.ts';

// Apart from the others: signal-cli waits a second in every poll.
channelContract('signal by polling', () => aSignalHarness('polling'));
