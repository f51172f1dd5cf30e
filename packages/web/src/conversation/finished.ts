/** Tells of a run that has just succeeded: a mark in the page's title, and a sound if the user wants one. */

/** Milliseconds for which no other tab of this browser tells of the same run. */
const CLAIMED_FOR = 60_000;
const CLAIM_KEY = "bowline.finished";

/**
 * Calls `tell` unless another tab of this browser does so for the same run. Tabs that show one conversation learn of its end at
 * nearly the same time.
 */
export async function inOneTab(run: string, storage: Claims, tell: () => void): Promise<void> {
  const { locks } = navigator as { locks?: LockManager };
  if (!locks) {
    // Without a secure context there are no locks. Two tabs may then both find nothing; that is only a second sound.
    if (storage.get(CLAIM_KEY) === run) return;
    storage.set(CLAIM_KEY, run);
    return tell();
  }
  await locks.request(`${CLAIM_KEY} ${run}`, { ifAvailable: true }, async (lock) => {
    if (!lock) return;
    tell();
    await new Promise((done) => setTimeout(done, CLAIMED_FOR));
  });
}

/** Where tabs leave word for each other. */
export interface Claims {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
}

/** Plays two short, quiet tones. Browsers refuse it until the user has touched the page. */
export function playFinished(): void {
  const audio = new AudioContext();
  if (audio.state === "suspended") return void audio.close();
  const start = audio.currentTime;
  [660, 880].forEach((frequency, i) => {
    const [tone, volume] = [audio.createOscillator(), audio.createGain()];
    const from = start + i * 0.12;
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0.08, from);
    volume.gain.exponentialRampToValueAtTime(0.001, from + 0.25);
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(from + 0.25);
    if (i === 1) tone.onended = () => void audio.close();
  });
}
