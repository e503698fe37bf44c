//! The arrays that are served, and how requests share them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use base::ByteSize;
use longtake::array::Seen;
use longtake::{Array, Uuid, array};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::access::Caller;
use crate::events::Events;
use crate::failure::Failure;
use crate::metrics::Look;
use crate::pcap_over_ip::Followers;
use crate::tls::Tls;
use crate::{Limits, ServeError};

/// Buffers of a request that lists.
const LISTING_MEMORY: ByteSize = ByteSize(16 << 20);

/// An array that is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// As it is called in addresses: its name, or its UUID if another array has that name.
    id: String,
    name: String,
    uuid: Uuid,
    /// What it is opened by.
    place: String,
    /// What the last request has found on it.
    seen: Arc<Mutex<Option<Seen>>>,
}

impl Served {
    /// The arrays of these names; those on the drives of this machine if there are none.
    ///
    /// # Errors
    /// If one can't be opened, or there is none.
    pub fn find(names: &[String]) -> Result<Vec<Self>, ServeError> {
        let mut found = Vec::new();
        for place in names {
            let wrong = |reason| ServeError::Array { name: place.clone(), reason };
            let array = open(place, LISTING_MEMORY, None).map_err(wrong)?;
            let served = Self::new(array.info().name, array.uuid(), place.clone());
            *served.seen() = Some(array.seen());
            found.push(served);
        }
        if names.is_empty() {
            let listed = array::list(&[], &mut |_| ()).map_err(ServeError::Drives)?;
            let listed = listed.into_iter();
            found.extend(listed.map(|array| {
                let place = array.uuid.to_string();
                Self::new(array.name, array.uuid, place)
            }));
        }
        found.sort_by_key(|array| array.uuid);
        found.dedup_by_key(|array| array.uuid);
        let names: Vec<String> = found.iter().map(|array| array.name.clone()).collect();
        for array in &mut found {
            let is_unique = names.iter().filter(|name| **name == array.name).count() == 1;
            if !is_unique || array.name.is_empty() {
                array.id = array.uuid.to_string();
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        if found.is_empty() { Err(ServeError::NoArray) } else { Ok(found) }
    }

    fn new(name: String, uuid: Uuid, place: String) -> Self {
        Self { id: name.clone(), name, uuid, place, seen: Arc::default() }
    }

    /// As it is called in addresses.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name that it was given when it was created.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its identity.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Opens it for reading, also if members are missing.
    ///
    /// # Errors
    /// If it can't be opened, or another array has taken its place.
    pub fn open(&self, memory: ByteSize) -> Result<Array, Failure> {
        let seen = self.seen().clone();
        let array = open(&self.place, memory, seen).map_err(Failure::of)?;
        if array.uuid() != self.uuid {
            return Err(Failure::replaced(&self.id));
        }
        *self.seen() = Some(array.seen());
        Ok(array)
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(place: &str, memory: ByteSize, seen: Option<Seen>) -> longtake::Result<Array> {
    Array::options().degraded(true).memory(memory).seen(seen).open(place)
}

/// What requests share.
#[derive(Debug)]
pub struct Service {
    arrays: Vec<Served>,
    listing: Semaphore,
    reading: Arc<Semaphore>,
    /// Of each token and each certificate that has read packets.
    reading_of_callers: Mutex<HashMap<String, Arc<Semaphore>>>,
    limits: Limits,
    counts: Counts,
    /// What scrapes have found, and when.
    looks: Mutex<HashMap<Uuid, (Instant, Arc<Look>)>>,
    events: Events,
    followers: Arc<Followers>,
    tls: Option<Arc<Tls>>,
}

/// Lets a request read packets until it is dropped.
#[derive(Debug)]
pub struct ReadPermit {
    _of_all: OwnedSemaphorePermit,
    _of_caller: Option<OwnedSemaphorePermit>,
}

/// What the service counts of itself.
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests that were answered with 503.
    pub refused: AtomicU64,
    /// Streams of packets whose connection was closed because they could not be completed.
    pub cut: AtomicU64,
    /// Requests for packets or flows whose client left before the answer was complete.
    pub left: AtomicU64,
}

impl Service {
    /// Serves these arrays.
    pub fn new(arrays: Vec<Served>, limits: &Limits, tls: Option<Arc<Tls>>) -> Self {
        let events = Events::new(&arrays, limits);
        Self {
            arrays,
            listing: Semaphore::new(limits.listing_max),
            reading: Arc::new(Semaphore::new(limits.reading_max)),
            reading_of_callers: Mutex::default(),
            limits: *limits,
            counts: Counts::default(),
            looks: Mutex::default(),
            events,
            followers: Arc::new(Followers::new(limits)),
            tls,
        }
    }

    /// The arrays.
    pub fn arrays(&self) -> &[Served] {
        &self.arrays
    }

    /// The array of this id or UUID.
    ///
    /// # Errors
    /// If none is served.
    pub fn array(&self, id: &str) -> Result<Served, Failure> {
        let by_id = self.arrays.iter().find(|array| array.id == id);
        let by_uuid =
            || self.arrays.iter().find(|array| array.uuid.to_string() == id.to_lowercase());
        by_id.or_else(by_uuid).cloned().ok_or_else(|| Failure::no_array(id))
    }

    /// Live events of the arrays.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Clients of PCAP-over-IP.
    pub fn followers(&self) -> &Arc<Followers> {
        &self.followers
    }

    /// Whether the files of TLS have changed and can't be used.
    pub fn has_outdated_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_outdated())
    }

    /// What the service counts of itself.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Requests that read packets now.
    pub fn reading_now(&self) -> usize {
        self.limits.reading_max - self.reading.available_permits()
    }

    /// Lets a request read packets, for as long as the permit is kept.
    ///
    /// # Errors
    /// If as many others do as may, of all clients or with the same token or certificate.
    pub fn may_read(&self, caller: &Caller) -> Result<ReadPermit, Failure> {
        let Limits { reading_max, reading_of_token_max, .. } = self.limits;
        let permit = |reading: Arc<Semaphore>, max, whom| {
            reading.try_acquire_owned().map_err(|_| {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                Failure::busy(max, whom)
            })
        };
        let of_caller = match caller.limited_by() {
            Some((name, whom)) => {
                let mut all =
                    self.reading_of_callers.lock().unwrap_or_else(PoisonError::into_inner);
                let reading = all.entry(name);
                let reading =
                    reading.or_insert_with(|| Arc::new(Semaphore::new(reading_of_token_max)));
                Some(permit(Arc::clone(reading), reading_of_token_max, whom)?)
            }
            None => None,
        };
        let of_all = permit(Arc::clone(&self.reading), reading_max, "")?;
        Ok(ReadPermit { _of_all: of_all, _of_caller: of_caller })
    }

    /// What a scrape has found on an array lately.
    pub fn looked(&self, array: &Served) -> Option<Arc<Look>> {
        let looks = self.looks.lock().ok()?;
        let (at, look) = looks.get(&array.uuid)?;
        (at.elapsed() <= self.limits.scraped_age_max).then(|| Arc::clone(look))
    }

    /// Keeps what a scrape has found.
    pub fn keep_look(&self, array: &Served, look: &Arc<Look>) {
        if let Ok(mut looks) = self.looks.lock() {
            looks.insert(array.uuid, (Instant::now(), Arc::clone(look)));
        }
    }

    /// Opens an array and looks at it, on a thread that may wait for drives.
    ///
    /// # Errors
    /// If the array is not served or can't be opened, or `look` fails.
    pub async fn look<T: Send + 'static>(
        &self,
        array: &Served,
        look: impl FnOnce(&mut Array) -> longtake::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        // It is never closed.
        let _permit = self.listing.acquire().await.ok();
        let array = array.clone();
        let looking = spawn_blocking(move || {
            let mut array = array.open(LISTING_MEMORY)?;
            look(&mut array).map_err(Failure::of)
        });
        looking.await.unwrap_or_else(|_| Err(Failure::broken()))
    }
}
