/**
 * Pictures of prompts, each fetched once and kept while it is shown, and the latest of the others for a while: a prompt moves
 * through several components on its way into the transcript. A plain module.
 */

/** Pictures that are kept. More are kept only while more are shown. */
export const MAX_PICTURES = 32;

export interface PictureSource {
  /** Fetches an upload of a session. */
  readonly fetch: (session: string, id: string) => Promise<Blob>;
  readonly makeUrl: (blob: Blob) => string;
  readonly revokeUrl: (url: string) => void;
}

/** What one component shows. */
export interface ShownPicture {
  /** The address in this page, if the picture is loaded already. */
  readonly url: string | undefined;
  /** The address once the picture is loaded. A picture that could not be fetched is fetched again when it is shown again. */
  readonly loaded: Promise<string>;
  /** To be called once, when the component does not show it any more. */
  readonly release: () => void;
}

interface Kept {
  url: string | undefined;
  readonly loaded: Promise<string>;
  /** Components that show it. */
  users: number;
}

export class Pictures {
  /** By session and id; the one that was shown longest ago is the first. */
  readonly #kept = new Map<string, Kept>();
  readonly #source: PictureSource;

  constructor(source: PictureSource) {
    this.#source = source;
  }

  show(session: string, id: string): ShownPicture {
    const key = `${session} ${id}`;
    const kept = this.#kept.get(key) ?? this.#load(key, session, id);
    kept.users += 1;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    this.#evict();
    const release = () => {
      kept.users -= 1;
      this.#evict();
    };
    return { url: kept.url, loaded: kept.loaded, release };
  }

  #load(key: string, session: string, id: string): Kept {
    const load = async () => {
      try {
        kept.url = this.#source.makeUrl(await this.#source.fetch(session, id));
      } catch (error) {
        this.#kept.delete(key);
        throw error;
      }
      const { url } = kept;
      this.#evict();
      return url;
    };
    const kept: Kept = { url: undefined, loaded: Promise.resolve().then(load), users: 0 };
    return kept;
  }

  /** Makes room. What is shown or being loaded stays. */
  #evict(): void {
    for (const [key, { url, users }] of this.#kept) {
      if (this.#kept.size <= MAX_PICTURES) return;
      if (users > 0 || url === undefined) continue;
      this.#kept.delete(key);
      this.#source.revokeUrl(url);
    }
  }
}
