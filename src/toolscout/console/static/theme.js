// Runs before anything is painted, so that a chosen theme does not flash.
document.documentElement.dataset.theme = localStorage.getItem("toolscout-theme") || "system";
